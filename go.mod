module ndpip

go 1.25

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/pelletier/go-toml/v2 v2.4.3
	github.com/stretchr/testify v1.12.1
	golang.org/x/net v0.50.0 // only for tests
	golang.org/x/sys v0.41.0
)

require (
	github.com/spf13/pflag v1.1.0
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
