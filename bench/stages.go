package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// stagePackages hold the benchmarks called BenchmarkStage…: each is one step of the data path, by itself and in the
// first-level cache. They need no DPDK, so they are built without cgo.
var stagePackages = []string{"./ring", "./tcp", "./stack"}

const stageRuns = 5

func runStages(e *env, _ point) ([]result, error) {
	root, err := projectRoot()
	if err != nil {
		return nil, err
	}
	tool, err := goTool()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	args := append([]string{"env", "CGO_ENABLED=0", tool, "test", "-buildvcs=false", "-run", "^$", "-bench", "^BenchmarkStage", "-count", strconv.Itoa(stageRuns),
		"-benchtime", (e.each / 20).String(), "-benchmem", "-timeout", "60s"}, stagePackages...)
	e.out.status("stage: building and running the Go benchmarks")
	p, err := startProcess(e.ctx, e.each+grace, func(s string) { out.WriteString(s + "\n") }, root, args...)
	if err != nil {
		return nil, err
	}
	if err := p.wait(); err != nil {
		return nil, err
	}
	return e.readStages(&out)
}

// readStages makes results of the lines that go test has printed. Lines of one name are the blocks of one result.
func (e *env) readStages(in *bytes.Buffer) ([]result, error) {
	var order []string
	blocks := map[string][]block{}
	points := map[string]point{}
	floors := map[int]float64{}
	r := benchfmt.NewReader(in, "go test")
	for r.Scan() {
		res, ok := r.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		ns, allocs := asPrinted(res)[unitTime], asPrinted(res)["allocs/op"]
		if ns == 0 {
			continue
		}
		_, keys := res.Name.Parts()
		key := string(res.Name.Full())
		p := point{}
		for _, k := range keys {
			name, value, _ := strings.Cut(strings.TrimPrefix(string(k), "/"), "=")
			switch name {
			case "mss":
				p.MSS, _ = strconv.Atoi(value)
			case "connections":
				p.Connections, _ = strconv.Atoi(value)
			case "checksum":
				p.Checksum = value
			}
		}
		if _, seen := points[key]; !seen {
			order = append(order, key)
			points[key] = p
		}
		if p.MSS != 0 && floors[p.MSS] == 0 {
			f, err := e.floorNow(p.MSS)
			if err != nil {
				return nil, err
			}
			floors[p.MSS] = f
		}
		blocks[key] = append(blocks[key], block{ns: ns, floor: floors[p.MSS], allocs: allocs})
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if len(order) == 0 {
		return nil, fmt.Errorf("go test ran no benchmark called BenchmarkStage… in %s", strings.Join(stagePackages, " "))
	}
	var out []result
	for _, key := range order {
		name, _, _ := strings.Cut(key, "/")
		name, _, _ = strings.Cut(name, "-")
		out = append(out, newResult("stage-"+strings.ToLower(strings.TrimPrefix(name, "Stage")), points[key], blocks[key]).counted())
	}
	return out, nil
}
