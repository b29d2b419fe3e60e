package main

import (
	_ "embed"

	"ndpip/cmd/internal/cli"
)

var (
	//go:embed help.txt
	helpAll string
	//go:embed help_recv.txt
	helpRecv string
	//go:embed help_send.txt
	helpSend string
	//go:embed help_ping.txt
	helpPing string
	//go:embed help_conn.txt
	helpConn string
)

// helpOf is the text for each verb.
var helpOf = map[string]string{"recv": helpRecv, "send": helpSend, "ping": helpPing, "conn": helpConn}

// help is the text for a verb, or the overview.
func help(verb string) string {
	if text := helpOf[verb]; text != "" {
		return text + "\n" + cli.NetHelp
	}
	return helpAll
}
