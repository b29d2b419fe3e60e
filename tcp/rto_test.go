package tcp

import "testing"

// The RTO by RFC 6298 section 2, of round trips as its formulas give them: alpha 1/8, beta 1/4, K 4.
func TestSample(t *testing.T) {
	const ms = int64(1e6)
	p := DefaultParams()
	c := Conn{rto: p.InitRTO}
	for i, want := range []struct{ trip, srtt, rttvar, rto int64 }{
		{800 * ms, 800 * ms, 400 * ms, 2400 * ms},
		{800 * ms, 800 * ms, 300 * ms, 2000 * ms},
		{1600 * ms, 900 * ms, 425 * ms, 2600 * ms},
		{100 * ms, 800 * ms, 518750000, 2875 * ms},
	} {
		if c.sample(&p, want.trip); c.srtt != want.srtt || c.rttvar != want.rttvar || c.rto != want.rto {
			t.Fatalf("sample %d: SRTT %d, RTTVAR %d, RTO %d, want %+v", i, c.srtt, c.rttvar, c.rto, want)
		}
	}
	for range 100 {
		c.sample(&p, 0) // never 0, whatever is measured
	}
	if c.srtt < 1 || c.rto != p.MinRTO {
		t.Errorf("SRTT %d, RTO %d, want the floor", c.srtt, c.rto)
	}
	for range 100 {
		c.sample(&p, 1e15)
	}
	if c.rto != p.MaxRTO {
		t.Errorf("RTO %d, want the cap", c.rto)
	}
}

// A timer that has expired more often than a byte can count goes on expiring.
func TestManyRetries(t *testing.T) {
	p := DefaultParams()
	p.Retries = 255
	c := Conn{state: Established, rto: p.InitRTO, UserTimeout: 1 << 60, sndWnd: 1000}
	c.snd.Store(pack(100, 0))
	now := int64(1)
	for range 1000 {
		c.rtoAt = now
		c.Timer(&p, now)
		if c.state != Established || c.rtoAt != now+min(p.MaxRTO, p.InitRTO<<min(c.retries, 31)) || c.retries == 0 {
			t.Fatalf("%d retries, in %v, timer in %d", c.retries, c.state, c.rtoAt-now)
		}
		now = c.rtoAt
	}
}
