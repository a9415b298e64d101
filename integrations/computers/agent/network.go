package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

const (
	proxyPort      = 3_128
	dnsPort        = 53
	dialTimeout    = 5 * time.Second
	answerTimeout  = 30 * time.Second
	maxAnswerBytes = 8_192
)

// A connection of which each side ends its own half.
type duplex interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// A computer's network. The space's egress proxy is the only way out of its namespace. Programs that use a proxy get a
// relay to it. For all others, a DNS server gives every name an address of this machine, and relays on the usual ports
// lead from the address back to the name. So names leave the computer only in CONNECT requests, and no DNS query does.
type network struct {
	holder *channel
	names  *nameTable
	// Connections through all relays together.
	connections chan struct{}
}

// startNetwork listens, and returns what it could not listen on. The rest is useful without it.
func startNetwork(holder *channel, ports []int, maxConnections int) []string {
	n := &network{holder, newNameTable(maxNames), make(chan struct{}, maxConnections)}
	faults := []string{}
	listen := func(host string, port int, serve func(net.Conn)) {
		listener, err := net.Listen("tcp4", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			faults = append(faults, fmt.Sprint(port, ": ", err))
			return
		}
		go accept(listener, serve)
	}
	if err := serveDNS(n.names); err != nil {
		faults = append(faults, fmt.Sprint(dnsPort, ": ", err))
	}
	clients := make(chan struct{}, maxDNSClients)
	listen("127.0.0.1", dnsPort, within(clients, func(client net.Conn) { serveDNSClient(client, n.names) }))
	listen("127.0.0.1", proxyPort, within(n.connections, func(client net.Conn) {
		join(client.(duplex), n.egress())
	}))
	for _, port := range ports {
		listen("0.0.0.0", port, within(n.connections, func(client net.Conn) { n.relay(client.(*net.TCPConn), port) }))
	}
	return faults
}

func (n *network) egress() *stream { return n.holder.open(map[string]string{"kind": "egress"}) }

func accept(listener net.Listener, serve func(net.Conn)) {
	for {
		client, err := listener.Accept()
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors, for example
			continue
		}
		go serve(client)
	}
}

// within serves as many clients at once as there is room for. Further ones are cut off.
func within(room chan struct{}, serve func(net.Conn)) func(net.Conn) {
	return func(client net.Conn) {
		select {
		case room <- struct{}{}:
			serve(client)
			client.Close()
			<-room
		default:
			reset(client)
		}
	}
}

// relay connects a program that does not use the proxy to the name that its address stands for.
func (n *network) relay(client *net.TCPConn, port int) {
	name := n.names.nameOf(addressOf(client.LocalAddr()))
	if name == "" {
		reset(client)
		return
	}
	egress := n.egress()
	defer egress.Close()
	late := time.AfterFunc(answerTimeout, func() { egress.Close() })
	fmt.Fprintf(egress, "CONNECT %s:%d HTTP/1.1\r\nhost: %s:%d\r\n\r\n", name, port, name, port)
	rest := bufio.NewReader(egress)
	head, err := readHead(rest)
	late.Stop()
	switch {
	case err == nil && bytes.HasPrefix(head, []byte("HTTP/1.")) && bytes.HasPrefix(head[8:], []byte(" 200")):
		join(client, buffered{rest, egress})
	case err == nil && port == 80:
		// A web client gets the proxy's answer. Other protocols cannot carry it.
		client.Write(head)
		io.Copy(client, rest)
	default:
		reset(client)
	}
}

// readHead reads up to the first empty line. `from` may then hold what comes after it.
func readHead(from *bufio.Reader) ([]byte, error) {
	var head []byte
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		line, err := from.ReadSlice('\n')
		head = append(head, line...)
		if err != nil {
			return nil, err
		}
		if len(head) > maxAnswerBytes {
			return nil, bufio.ErrBufferFull
		}
	}
	return head, nil
}

// A stream, of which something has been read already.
type buffered struct {
	*bufio.Reader
	stream *stream
}

func (b buffered) Write(from []byte) (int, error) { return b.stream.Write(from) }
func (b buffered) CloseWrite() error              { return b.stream.CloseWrite() }
func (b buffered) Close() error                   { return b.stream.Close() }

// reset cuts a client off, so that it sees an error and not an end.
func reset(client net.Conn) {
	client.(*net.TCPConn).SetLinger(0)
	client.Close()
}

// dialPort joins a stream with a port inside the sandbox.
func dialPort(port int, s *stream) error {
	for _, host := range []string{"127.0.0.1", "::1"} {
		if dial("tcp", net.JoinHostPort(host, strconv.Itoa(port)), s) {
			return nil
		}
	}
	return refusal("PORT_NOT_LISTENING")
}

// dialSocket joins a stream with a unix socket inside the sandbox.
func dialSocket(path string, s *stream) error {
	if dial("unix", path, s) {
		return nil
	}
	return refusal("SOCKET_NOT_LISTENING")
}

func dial(kind, address string, s *stream) bool {
	connection, err := net.DialTimeout(kind, address, dialTimeout)
	if err != nil {
		return false
	}
	s.answer(struct{}{})
	join(s, connection.(duplex))
	return true
}

// join passes everything in both directions. When one side ends, the other is ended; when one is cut, the other is cut.
func join(a, b duplex) {
	done := make(chan struct{})
	pass := func(from, to duplex) {
		_, err := io.Copy(to, from)
		if err == nil {
			err = to.CloseWrite()
		}
		if err != nil {
			a.Close()
			b.Close()
		}
		done <- struct{}{}
	}
	go pass(a, b)
	go pass(b, a)
	<-done
	<-done
	a.Close()
	b.Close()
}
