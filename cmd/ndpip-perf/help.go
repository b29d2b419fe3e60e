package main

import (
	_ "embed"

	"ndpip/cmd/internal/cli"
)

var (
	//go:embed help.txt
	helpBoth string
	//go:embed help_recv.txt
	helpRecv string
	//go:embed help_send.txt
	helpSend string
)

// help is the text for a verb, or the overview.
func help(verb string) string {
	switch verb {
	case "recv":
		return helpRecv + "\n" + cli.NetHelp
	case "send":
		return helpSend + "\n" + cli.NetHelp
	}
	return helpBoth
}
