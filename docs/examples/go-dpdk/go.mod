module example

go 1.25

require (
	github.com/yerden/go-dpdk v0.0.0
	ndpip v0.0.0
)

replace ndpip => ../../..
