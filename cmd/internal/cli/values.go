package cli

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The values of options. Each implements pflag.Value; the error of Set says what the option takes, and Flags.Parse
// puts the option and the wrong value in front of it.

// Number is a whole number from Min to Max.
type Number struct {
	P        *int
	Min, Max int
	Unit     string // "bytes", or "" when the number counts the thing that the option names
}

func (v Number) String() string {
	if v.P == nil {
		return ""
	}
	return strconv.Itoa(*v.P)
}
func (v Number) Type() string { return "N" }

func (v Number) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < v.Min || n > v.Max {
		unit := v.Unit
		if unit != "" {
			unit = " " + unit
		}
		return fmt.Errorf("a whole number from %d to %d%s", v.Min, v.Max, unit)
	}
	*v.P = n
	return nil
}

// Size is a number of bytes with an optional k, m or g for powers of 1024.
type Size struct {
	P        *int
	Min, Max int
}

func (v Size) String() string {
	if v.P == nil {
		return ""
	}
	return strconv.Itoa(*v.P)
}
func (v Size) Type() string { return "BYTES" }

func (v Size) Set(s string) error {
	digits, shift := strings.ToLower(s), 0
	if n := len(digits); n > 0 {
		if i := strings.IndexByte("kmg", digits[n-1]); i >= 0 {
			digits, shift = digits[:n-1], 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || n<<shift>>shift != n || n<<shift < uint64(v.Min) || n<<shift > uint64(v.Max) {
		return fmt.Errorf("bytes from %s to %s, such as 65536, 256k or 4m", short(v.Min), short(v.Max))
	}
	*v.P = int(n << shift)
	return nil
}

// short writes n with the largest suffix that is exact.
func short(n int) string {
	for i, suffix := range []string{"g", "m", "k"} {
		if unit := 1 << (30 - 10*i); n >= unit && n%unit == 0 {
			return strconv.Itoa(n/unit) + suffix
		}
	}
	return strconv.Itoa(n)
}

// Seconds is a span of time: seconds with a fraction, or Go's notation (1m30s). 0 stands for none.
type Seconds struct {
	P   *time.Duration
	Min time.Duration // the least span that is not 0
}

func (v Seconds) String() string {
	if v.P == nil {
		return ""
	}
	return strconv.FormatFloat(v.P.Seconds(), 'g', -1, 64)
}
func (v Seconds) Type() string { return "SECONDS" }

func (v Seconds) Set(s string) error {
	d, err := time.ParseDuration(s)
	if f, ferr := strconv.ParseFloat(s, 64); ferr == nil && !math.IsNaN(f) && math.Abs(f) <= 1e9 {
		d, err = time.Duration(f*1e9), nil
	}
	if err != nil || d < 0 || d > 0 && d < v.Min {
		least := ""
		if v.Min > 0 {
			least = fmt.Sprintf(" of at least %g", v.Min.Seconds())
		}
		return fmt.Errorf("seconds%s, such as 10 or 0.5, or 0 for none", least)
	}
	*v.P = d
	return nil
}

// Share is a part of a whole: a percentage or a fraction.
type Share struct{ P *float64 }

func (v Share) String() string {
	if v.P == nil {
		return ""
	}
	return strconv.FormatFloat(*v.P, 'g', -1, 64)
}
func (v Share) Type() string { return "SHARE" }

func (v Share) Set(s string) error {
	digits, percent := strings.CutSuffix(s, "%")
	f, err := strconv.ParseFloat(digits, 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f >= 0 && f <= 1) {
		return errors.New("a share from 0 to 1, such as 1% or 0.01")
	}
	*v.P = f
	return nil
}

// IP is an IPv4 address.
type IP struct{ P *netip.Addr }

func (v IP) String() string {
	if v.P == nil || !v.P.IsValid() {
		return ""
	}
	return v.P.String()
}
func (v IP) Type() string { return "IP" }

func (v IP) Set(s string) error {
	a, err := netip.ParseAddr(s)
	if err != nil || !hostAddr(a) {
		return errors.New("the IPv4 address of one host, such as 10.0.0.1")
	}
	*v.P = a
	return nil
}

// IPLen is an IPv4 address with or without a prefix length. Without one, Bits() is -1.
type IPLen struct{ P *netip.Prefix }

func (v IPLen) String() string {
	if v.P == nil || !v.P.Addr().IsValid() {
		return ""
	}
	return v.P.String()
}
func (v IPLen) Type() string { return "IP[/LEN]" }

func (v IPLen) Set(s string) error {
	if p, err := netip.ParsePrefix(s); err == nil && hostAddr(p.Addr()) {
		*v.P = p
		return nil
	}
	if a, err := netip.ParseAddr(s); err == nil && hostAddr(a) {
		*v.P = netip.PrefixFrom(a, -1) // a prefix that is not valid, but keeps its address
		return nil
	}
	return errors.New("the IPv4 address of one host, such as 10.0.0.1 or 10.0.0.1/24")
}

// hostAddr says whether a can be the address of one host.
func hostAddr(a netip.Addr) bool {
	return a.Is4() && !a.IsUnspecified() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// MAC is the Ethernet address of one station.
type MAC struct{ P *net.HardwareAddr }

func (v MAC) String() string {
	if v.P == nil {
		return ""
	}
	return v.P.String()
}
func (v MAC) Type() string { return "MAC" }

func (v MAC) Set(s string) error {
	m, err := parseMAC(s)
	if err != nil || m[0]&1 != 0 {
		return errors.New("the Ethernet address of one station (the lowest bit of its first byte is 0), such as 02:00:00:00:00:01")
	}
	*v.P = m
	return nil
}

func parseMAC(s string) (net.HardwareAddr, error) {
	m, err := net.ParseMAC(s)
	if err != nil || len(m) != 6 || [6]byte(m) == [6]byte{} {
		return nil, errors.New("no Ethernet address")
	}
	return m, nil
}

// Neighbours are static ARP entries IP=MAC; the option may be given more than once. The broadcast address is allowed
// for a peer whose own is not known.
type Neighbours struct {
	P *map[netip.Addr]net.HardwareAddr
}

func (v Neighbours) String() string { return strings.Join(v.Items(), ",") }

// Items are the values, one by one.
func (v Neighbours) Items() (all []string) {
	if v.P == nil {
		return nil
	}
	for ip, mac := range *v.P {
		all = append(all, ip.String()+"="+mac.String())
	}
	slices.Sort(all)
	return all
}

func (v Neighbours) Type() string { return "IP=MAC" }

func (v Neighbours) Set(s string) error {
	ip, mac, ok := strings.Cut(s, "=")
	a, aerr := netip.ParseAddr(ip)
	m, merr := parseMAC(mac)
	if !ok || aerr != nil || !hostAddr(a) || merr != nil {
		return errors.New("IP=MAC, such as 10.0.0.2=02:00:00:00:00:02")
	}
	if *v.P == nil {
		*v.P = make(map[netip.Addr]net.HardwareAddr)
	}
	(*v.P)[a] = m
	return nil
}

// Choice is one of a few words.
type Choice struct {
	P     *string
	Words []string
}

func (v Choice) String() string {
	if v.P == nil {
		return ""
	}
	return *v.P
}
func (v Choice) Type() string { return strings.Join(v.Words, "|") }

func (v Choice) Set(s string) error {
	for _, w := range v.Words {
		if s == w {
			*v.P = s
			return nil
		}
	}
	return errors.New("one of " + strings.Join(v.Words, ", "))
}

// Words is a list of words; the option may be given more than once.
type Words struct{ P *[]string }

func (v Words) String() string {
	if v.P == nil {
		return ""
	}
	return strings.Join(*v.P, " ")
}
func (v Words) Type() string { return "WORDS" }
func (v Words) Set(s string) error {
	*v.P = append(*v.P, strings.Fields(s)...)
	return nil
}

// Items are the words.
func (v Words) Items() []string {
	if v.P == nil {
		return nil
	}
	return *v.P
}
