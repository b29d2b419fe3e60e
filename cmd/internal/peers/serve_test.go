package peers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"time"
)

// The services of a child, by port.
const (
	echoPort   = 7    // TCP and UDP: everything comes back, and the end of the stream when there is no more
	sumPort    = 8    // at the end of what is sent: "SHA-256 LENGTH\n"
	slowPort   = 9    // the same, but reading begins 10 s later
	httpPort   = 80   // /hello; /bytes/N gives N bytes of noise; what is posted to /sum is summed
	tlsPort    = 443  // the same
	maxService = 1000 // ports below
)

// slowness is how long a peer does nothing.
const slowness = 10 * time.Second

// serve starts the services.
func (c *child) serve() error {
	for port, serve := range map[int]func(net.Conn){echoPort: c.echo, sumPort: c.sum, slowPort: c.slow} {
		l, err := c.listen(port)
		if err != nil {
			return err
		}
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				c.open[port].Add(1)
				go func() {
					defer c.open[port].Add(-1)
					defer conn.Close()
					serve(conn)
				}()
			}
		}()
	}
	udp, err := c.net.ListenPacket("udp", net.JoinHostPort(c.ip.String(), strconv.Itoa(echoPort)))
	if err != nil {
		return err
	}
	go func() {
		for b := make([]byte, 2000); ; {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(b[:n], from)
		}
	}()
	return c.serveHTTP()
}

func (c *child) listen(port int) (net.Listener, error) {
	return c.net.Listen("tcp", net.JoinHostPort(c.ip.String(), strconv.Itoa(port)))
}

func (c *child) echo(conn net.Conn) { io.Copy(conn, conn) }

func (c *child) sum(conn net.Conn) {
	h := sha256.New()
	n, err := io.Copy(h, conn)
	if err == nil {
		fmt.Fprintf(conn, "%x %d\n", h.Sum(nil), n)
	}
}

func (c *child) slow(conn net.Conn) {
	time.Sleep(slowness)
	c.sum(conn)
}

func (c *child) serveHTTP() error {
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello\n") })
	mux.HandleFunc("/bytes/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("n"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(n))
		io.Copy(w, noise(n))
	})
	mux.HandleFunc("POST /sum", func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, err := io.Copy(h, r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "%s %d\n", hex.EncodeToString(h.Sum(nil)), n)
	})
	cert, err := certificate()
	if err != nil {
		return err
	}
	plain, err := c.listen(httpPort)
	if err != nil {
		return err
	}
	secret, err := c.listen(tlsPort)
	if err != nil {
		return err
	}
	go http.Serve(plain, mux)
	overTLS := &http.Server{Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}}
	go overTLS.ServeTLS(secret, "", "")
	return nil
}

// certificate is one that nobody has signed.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), DNSNames: []string{"ndpip"}}
	der, err := x509.CreateCertificate(crand.Reader, t, t, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
