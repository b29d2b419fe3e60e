// Package cli is what the programs under cmd share: the options that describe the wire and the host, the split between
// EAL arguments and options, the exit statuses, and the signals that end a program.
//
//	program → Split → NewFlags, Net.Register, Parse → Net.Config → Open → the program's loop → Exit
//
// Every fault is one line on standard error that says what was wrong and what would be right. A wrong option gives
// status 2, a machine that lacks something status 1, and a program that did its work, or was asked to stop, 0.
package cli
