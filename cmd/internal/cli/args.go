package cli

import "strings"

// Split parts a command line at its first "--": what stands before goes to DPDK's EAL as it is, what follows are
// options. Without "--" everything is an option. --wire may stand on either side, since EAL has no option of that
// name; it is moved to the options.
func Split(args []string) (eal, opts []string, err error) {
	at := -1
	for i, a := range args {
		if a == "--" {
			at = i
			break
		}
	}
	if at < 0 {
		return nil, args, nil
	}
	opts = append(opts, args[at+1:]...)
	for i := 0; i < at; i++ {
		switch a := args[i]; {
		case a == "--wire" && i+1 < at:
			opts = append(opts, a, args[i+1])
			i++
		case a == "--wire":
			return nil, nil, Usagef("--wire needs a value, such as --wire memif:/tmp/ndpip.sock")
		case strings.HasPrefix(a, "--wire="):
			opts = append(opts, a)
		default:
			eal = append(eal, a)
		}
	}
	return eal, opts, nil
}

// WantsHelp says whether one of the arguments asks for help.
func WantsHelp(args []string) bool {
	for _, a := range args {
		if a == "--help" || a == "-h" {
			return true
		}
	}
	return false
}

// ealHas says whether the EAL arguments contain option name, alone or as name=value.
func ealHas(eal []string, name string) bool {
	for _, a := range eal {
		if a == name || strings.HasPrefix(a, name+"=") {
			return true
		}
	}
	return false
}
