package api

import (
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkLockstep is a burst of 32 segments from one inline host to another on one thread: what the calls cost.
func BenchmarkLockstep(b *testing.B) {
	x, y := ringHosts(b, Config{Inline: true, Checksum: ChecksumOff})
	for _, c := range []struct {
		name       string
		mss, burst int
		epoll      bool
	}{
		{"64x32", 64, 32, false}, {"1460x32", 1460, 32, false}, {"64x1", 64, 1, false}, {"64x1epoll", 64, 1, true}, {"64x32epoll", 64, 32, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			release, err := PinThread(-1)
			if err != nil {
				b.Fatal(err)
			}
			defer release()
			cx, cy := connected(b, x, y, map[int]int{SO_NDPIP_MAX_TX_SEG: c.mss})
			defer x.Close(cx)
			defer y.Close(cy)
			ep, _ := y.EpollCreate()
			defer y.Close(ep)
			if err := y.EpollCtl(ep, unix.EPOLL_CTL_ADD, cy, &EpollEvent{Events: unix.EPOLLIN}); err != nil {
				b.Fatal(err)
			}
			out, in := make([]byte, c.burst*c.mss), make([]byte, c.burst*c.mss)
			evs := make([]EpollEvent, 16)
			b.ReportAllocs()
			b.ResetTimer()
			begin := cpuTime()
			for i := 0; i < b.N; i++ {
				if n, err := x.Write(cx, out); n != len(out) {
					b.Fatal(i, n, err)
				}
				if c.epoll {
					if n, err := y.EpollWait(ep, evs, -1); n != 1 {
						b.Fatal(n, err)
					}
				} else {
					y.poll()
				}
				if n, err := y.Read(cy, in); n != len(in) {
					b.Fatal(i, n, err)
				}
				x.poll()
			}
			b.StopTimer()
			b.ReportMetric(float64(cpuTime()-begin)/float64(b.N*c.burst), "cpu-ns/seg")
		})
	}
}

// cpuTime is what this thread has used of its CPU, in ns: other processes disturb it less than the time of day.
func cpuTime() int64 {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkEpollIdle is a look at an instance with nothing ready.
func BenchmarkEpollIdle(b *testing.B) {
	x, y := ringHosts(b, Config{Checksum: ChecksumOff, Yield: true})
	ep, _ := y.EpollCreate()
	_ = x
	evs := make([]EpollEvent, 16)
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		if n, err := y.EpollWait(ep, evs, 0); n != 0 {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkPingPong is a byte there and back between two hosts with a worker each, with blocking calls.
func BenchmarkPingPong(b *testing.B) {
	x, y := ringHosts(b, Config{Yield: true})
	cx, cy := dial(b, x, y, 0)
	go func() {
		p := make([]byte, 1)
		for {
			if n, _ := y.Read(cy, p); n != 1 {
				return
			}
			y.Write(cy, p)
		}
	}()
	p := make([]byte, 1)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		x.Write(cx, p)
		if n, err := x.Read(cx, p); n != 1 {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	x.Close(cx)
}
