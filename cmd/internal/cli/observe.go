package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/pflag"

	"ndpip/api"
)

// observe holds the options that let one see what a host does.
type observe struct {
	control, metrics  string
	pcap, pcapFilter  string
	log, trace        string
	stopTrace         func() uint64
	pcapSnap, pcapMax int
	file              *os.File
	capture           *api.Capture
	server            *http.Server
	notes             io.Writer
}

func (o *observe) register(f *Flags) {
	*o = observe{}
	f.StringVar(&o.control, "control", "", "the path of ndpip-stat's socket, or off")
	f.StringVar(&o.metrics, "metrics", "", "where to serve OpenMetrics, such as 127.0.0.1:9100")
	o.log = "off"
	f.Var(Choice{&o.log, []string{"off", "error", "warn", "info", "debug"}}, "log", "the least that is logged, such as warn")
	f.StringVar(&o.trace, "trace", "", `connections whose states are logged: all, or words such as "host 10.0.0.2 port 80"`)
	f.StringVar(&o.pcap, "pcap", "", "the file that takes a capture of all frames")
	f.StringVar(&o.pcapFilter, "pcap-filter", "", `frames to keep, such as "host 10.0.0.2 port 80"`)
	f.Var(Number{&o.pcapSnap, 14, 1 << 18, "bytes"}, "pcap-snap", "bytes to keep of a frame, such as 96")
	f.Var(Size{&o.pcapMax, 2048, maxBuffer}, "pcap-max", "the length at which the capture ends, such as 64m")
}

func (o *observe) consistent(f *pflag.FlagSet) error {
	for _, name := range []string{"pcap-filter", "pcap-snap", "pcap-max"} {
		if f.Changed(name) && o.pcap == "" {
			return Usagef("--%s needs --pcap FILE", name)
		}
	}
	if _, _, err := net.SplitHostPort(o.metrics); o.metrics != "" && err != nil {
		return Usagef("--metrics %s: want ADDRESS:PORT, such as 127.0.0.1:9100", quote(o.metrics))
	}
	return nil
}

// logger is what api.Config.Log is set to; nil: nothing is logged.
func (o *observe) logger() *slog.Logger {
	var level slog.Level
	if o.log == "off" || level.UnmarshalText([]byte(o.log)) != nil {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// begin starts what the options ask for.
func (o *observe) begin(h *api.Host, notes io.Writer) (err error) {
	o.notes = notes
	if o.metrics != "" {
		if err := o.serve(); err != nil {
			return err
		}
	}
	if o.trace != "" {
		if err := o.follow(h); err != nil {
			return err
		}
	}
	if o.pcap == "" {
		return nil
	}
	if o.file, err = os.Create(o.pcap); err != nil {
		return fmt.Errorf("--pcap: %w", err)
	}
	o.capture, err = h.Capture(o.file, api.CaptureConfig{Filter: o.pcapFilter, Snap: o.pcapSnap, Bytes: int64(o.pcapMax)})
	var config *api.ConfigError
	if errors.As(err, &config) {
		return Usagef("--pcap-filter %s", config.Problem)
	}
	return err
}

// follow logs the changes of connections' states.
func (o *observe) follow(h *api.Host) (err error) {
	log := slog.New(slog.NewTextHandler(o.notes, nil))
	o.stopTrace, err = h.Trace(o.trace, func(c api.StateChange) {
		args := []any{"local", c.Local, "remote", c.Remote, "from", c.From, "to", c.To}
		if c.Why != nil {
			args = append(args, "why", c.Why)
		}
		log.Info("state", args...)
	})
	var config *api.ConfigError
	if errors.As(err, &config) {
		return Usagef("--trace %s", config.Problem)
	}
	return err
}

// serve answers Prometheus.
func (o *observe) serve() error {
	l, err := net.Listen("tcp", o.metrics)
	if err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
		_ = api.WriteMetrics(w)
	})
	o.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second}
	go func() { _ = o.server.Serve(l) }()
	fmt.Fprintf(o.notes, "metrics at http://%s/metrics\n", l.Addr())
	return nil
}

// end is called when the host has stopped, which ends its captures.
func (o *observe) end() error {
	if o.server != nil {
		_ = o.server.Close()
	}
	if o.stopTrace != nil {
		if n := o.stopTrace(); n > 0 {
			fmt.Fprintf(o.notes, "trace: %d more changes came too fast\n", n)
		}
	}
	if o.capture == nil {
		return nil
	}
	s, err := o.capture.Stop()
	if cerr := o.file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("--pcap %s: %w", o.pcap, err)
	}
	note := ""
	switch {
	case s.Full:
		note = "; --pcap-max ended it"
	case s.Lost > 0:
		note = fmt.Sprintf("; %d more are missing, as the file could not be written fast enough: --pcap-filter or --pcap-snap make less of it", s.Lost)
	}
	fmt.Fprintf(o.notes, "%s: %d frames%s\n", o.pcap, s.Frames, note)
	return nil
}

// Open is Open, and begins what the options ask to be seen.
func (n *Net) Open(cfg api.Config, notes io.Writer, stop *Stop, limit time.Duration) (*api.Host, error) {
	h, err := Open(cfg, notes, stop, limit)
	if h == nil {
		return nil, err
	}
	if err := n.observe.begin(h, notes); err != nil {
		_ = n.Close(h)
		return nil, err
	}
	return h, nil
}

// Close is Close, and ends what Open has begun.
func (n *Net) Close(h *api.Host) error {
	return errors.Join(Close(h), n.observe.end())
}
