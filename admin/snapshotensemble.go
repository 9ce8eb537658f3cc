package admin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"kctl/admin/check"
)

// srvrMax bounds the answer of a four-letter word.
const srvrMax = 64 << 10

// readEnsemble asks every ZooKeeper server of the connect string for what it says of itself. srvr is the one word that
// ZooKeeper answers by default.
func (r *factsReader) readEnsemble(ctx context.Context) {
	addrs := r.c.cfg.ZooKeeper.Servers
	out := make([]check.Server, len(addrs)) // one slot per server: no two goroutines share one
	var wg sync.WaitGroup
	for i, addr := range addrs {
		wg.Go(func() {
			text, err := fourLetters(ctx, zkDialer{r.c.cfg.ZooKeeperTLS}, addr, "srvr", r.c.brokerTimeout())
			if err == nil {
				out[i], err = parseSrvr(text)
			}
			if err != nil {
				out[i].Err = short(err)
			}
			out[i].Addr = addr
		})
	}
	wg.Wait()
	r.f.Servers = out
}

func fourLetters(ctx context.Context, d zkDialer, addr, word string, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(conn, srvrMax))
	if err != nil && len(data) == 0 {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", err
	}
	return string(data), nil
}

// parseSrvr reads the answer to srvr. Lines that it does not know are skipped.
func parseSrvr(text string) (check.Server, error) {
	var s check.Server
	known := false
	sc := bufio.NewScanner(strings.NewReader(text))
	sc.Buffer(nil, srvrMax)
	for sc.Scan() {
		name, value, ok := strings.Cut(sc.Text(), ":")
		if value = strings.TrimSpace(value); !ok {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "zookeeper version":
			known = true
			s.Version, _, _ = strings.Cut(value, ",")
		case "latency min/avg/max":
			parts := strings.Split(value, "/")
			if len(parts) == 3 {
				s.AvgLatency, _ = strconv.ParseFloat(parts[1], 64) // 0 when it is no number
				s.MaxLatency, _ = strconv.ParseFloat(parts[2], 64)
			}
		case "outstanding":
			s.Outstanding, _ = strconv.ParseInt(value, 10, 64)
		case "node count":
			s.Nodes, _ = strconv.ParseInt(value, 10, 64)
		case "mode":
			s.Mode = value
		}
	}
	switch {
	case strings.Contains(text, "not currently serving requests"):
		return s, errors.New("it is not serving requests: no quorum")
	case !known && strings.Contains(text, "not in the whitelist"):
		s.Mode = "unknown" // it lives, and does not say more: 4lw.commands.whitelist forbids it
	case !known:
		return s, errors.New("the answer is not ZooKeeper's")
	}
	return s, nil
}
