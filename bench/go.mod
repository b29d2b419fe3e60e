module ndpip/bench

go 1.25

require ndpip v0.0.0

require golang.org/x/sys v0.41.0 // indirect

replace ndpip => ../
