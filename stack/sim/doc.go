// Package sim runs two stacks against each other over a link in memory, in virtual time, and checks what they do.
//
//	scenario (from a seed) ─→ world: script ─ stack A ─ link with faults ─ stack B ─ script
//	                                            └─ checker sees each frame ─┘
//
// Everything follows from the seed: what the wire does to frames, how the stacks are configured, how many connections
// there are, who writes how much in pieces of which size, who reads slowly, and who ends how. A run jumps from one
// event to the next, so hours of virtual time take milliseconds, and a run that failed can be repeated to the frame.
//
// What is checked: the stream that arrives is a prefix of the one that was sent, and all of it if its end arrives;
// what is on the wire agrees with a model of its own (checker); an orderly end is free of errors; each connection ends
// in bounded time, and everything it held comes back.
package sim
