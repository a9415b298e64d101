package main

import (
	"encoding/binary"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// A query has one name of at most 255 bytes. No resolver sends a longer message.
	maxQueryBytes  = 512
	dnsHeaderBytes = 12
	ttlSeconds     = 60
	dnsIdleTimeout = 10 * time.Second
	maxDNSClients  = 32
)

const (
	addressType  = 1
	pointerType  = 12
	address6Type = 28
)

const (
	malformed   = 1
	unknownName = 3
	unsupported = 4
)

var label = regexp.MustCompile(`^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$`)

// answerQuery answers a DNS query (RFC 1035), or returns nil for a message that is none. Every name gets an address from
// the table. Other record types get an empty answer, which is not an error. No other server is asked: a program learns
// whether a name exists when it connects.
func answerQuery(query []byte, names *nameTable) []byte {
	if len(query) < dnsHeaderBytes || query[2]&0x80 != 0 {
		return nil
	}
	if len(query) > maxQueryBytes || binary.BigEndian.Uint16(query[4:]) != 1 {
		return reply(query, malformed, nil, nil)
	}
	if query[2]&0x78 != 0 {
		return reply(query, unsupported, nil, nil)
	}
	name, end := readName(query)
	if name == "" || end+4 > len(query) {
		return reply(query, malformed, nil, nil)
	}
	kind, class := binary.BigEndian.Uint16(query[end:]), binary.BigEndian.Uint16(query[end+2:])
	asked := query[dnsHeaderBytes : end+4]
	for part := range strings.SplitSeq(name, ".") {
		if class != 1 || !label.MatchString(part) {
			return reply(query, unknownName, asked, nil)
		}
	}
	if reversed, isReverse := strings.CutSuffix(name, ".in-addr.arpa"); isReverse {
		found := names.nameOf(reverse(reversed))
		if found == "" {
			return reply(query, unknownName, asked, nil)
		}
		if kind == pointerType {
			return reply(query, 0, asked, record(kind, encodeName(found)))
		}
		return reply(query, 0, asked, nil)
	}
	return reply(query, 0, asked, recordOf(name, kind, names))
}

func recordOf(name string, kind uint16, names *nameTable) []byte {
	isLocal := name == "localhost" || strings.HasSuffix(name, ".localhost") // RFC 6761 §6.3
	switch {
	case kind == address6Type && isLocal:
		return record(kind, net.IPv6loopback)
	case kind == addressType && isLocal:
		return record(kind, []byte{127, 0, 0, 1})
	case kind == addressType:
		return record(kind, binary.BigEndian.AppendUint32(nil, names.addressOf(name)))
	}
	return nil
}

// readName returns the name that is asked for, and where it ends; nothing if it is not valid.
func readName(query []byte) (string, int) {
	var labels []string
	at := dnsHeaderBytes
	for at < len(query) {
		length := int(query[at])
		at++
		if length == 0 {
			return strings.ToLower(strings.Join(labels, ".")), at
		}
		// A larger length is a pointer. A question has none.
		if length > 63 || at-dnsHeaderBytes+length > 255 || at+length > len(query) {
			return "", 0
		}
		labels = append(labels, string(query[at:at+length]))
		at += length
	}
	return "", 0
}

func reply(query []byte, code byte, asked, answer []byte) []byte {
	// A response with "recursion available", and with the opcode and "recursion desired" of the query.
	response := append([]byte(nil), query[:2]...)
	response = append(response, 0x80|query[2]&0x79, 0x80|code)
	for _, section := range [][]byte{asked, answer, nil, nil} {
		response = append(response, 0, byte(min(len(section), 1)))
	}
	return append(append(response, asked...), answer...)
}

func record(kind uint16, data []byte) []byte {
	head := []byte{0xc0, dnsHeaderBytes} // the name is a pointer to the question's
	head = binary.BigEndian.AppendUint16(head, kind)
	head = binary.BigEndian.AppendUint16(head, 1)
	head = binary.BigEndian.AppendUint32(head, ttlSeconds)
	head = binary.BigEndian.AppendUint16(head, uint16(len(data)))
	return append(head, data...)
}

func encodeName(name string) []byte {
	var encoded []byte
	for part := range strings.SplitSeq(name, ".") {
		encoded = append(append(encoded, byte(len(part))), part...)
	}
	return append(encoded, 0)
}

// reverse returns the address of a name such as `4.3.2.1` in the domain for addresses, or 0.
func reverse(name string) uint32 {
	parts := strings.Split(name, ".")
	if len(parts) != 4 {
		return 0
	}
	var address uint32
	for at := range parts {
		part, err := strconv.ParseUint(parts[3-at], 10, 8)
		if err != nil {
			return 0
		}
		address = address<<8 | uint32(part)
	}
	return address
}

// serveDNS answers queries over UDP.
func serveDNS(names *nameTable) error {
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: dnsPort})
	if err != nil {
		return err
	}
	go func() {
		query := make([]byte, 65_536)
		for {
			length, from, err := socket.ReadFromUDPAddrPort(query)
			if err != nil {
				continue
			}
			if answer := answerQuery(query[:length], names); answer != nil {
				socket.WriteToUDPAddrPort(answer, from)
			}
		}
	}()
	return nil
}

// serveDNSClient answers queries over TCP, where each message is preceded by its length (RFC 7766).
func serveDNSClient(client net.Conn, names *nameTable) {
	defer client.Close()
	var length [2]byte
	query := make([]byte, maxQueryBytes)
	for {
		client.SetDeadline(time.Now().Add(dnsIdleTimeout)) // also for a client that does not read
		if _, err := io.ReadFull(client, length[:]); err != nil || binary.BigEndian.Uint16(length[:]) > maxQueryBytes {
			return
		}
		message := query[:binary.BigEndian.Uint16(length[:])]
		if _, err := io.ReadFull(client, message); err != nil {
			return
		}
		answer := answerQuery(message, names)
		if answer == nil {
			return
		}
		client.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
	}
}
