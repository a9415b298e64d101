package main

import (
	"container/list"
	"encoding/binary"
	"hash/fnv"
	"net"
	"sync"
)

const (
	// 127.64.0.0/10: loopback addresses, which the kernel delivers here and programs do not use on their own.
	firstAddress = 0x7f_40_00_00
	addresses    = 1 << 22
	maxNames     = 20_000
)

// A table of names and their addresses. An address is derived from its name, so it stays the same over restarts. When
// the table is full, the name that was used least recently is dropped.
type nameTable struct {
	mu   sync.Mutex
	most int
	// The last used name first. The maps lead to its elements.
	used      *list.List
	byName    map[string]*list.Element
	byAddress map[uint32]*list.Element
}

type named struct {
	name    string
	address uint32
}

func newNameTable(most int) *nameTable {
	return &nameTable{most: most, used: list.New(), byName: map[string]*list.Element{}, byAddress: map[uint32]*list.Element{}}
}

func (t *nameTable) addressOf(name string) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.byName[name]; found != nil {
		t.used.MoveToFront(found)
		return found.Value.(named).address
	}
	if t.used.Len() >= t.most {
		oldest := t.used.Remove(t.used.Back()).(named)
		delete(t.byName, oldest.name)
		delete(t.byAddress, oldest.address)
	}
	hash := fnv.New32a()
	hash.Write([]byte(name))
	slot := hash.Sum32() % addresses
	for t.byAddress[firstAddress+slot] != nil {
		slot = (slot + 1) % addresses
	}
	added := t.used.PushFront(named{name, firstAddress + slot})
	t.byName[name], t.byAddress[firstAddress+slot] = added, added
	return firstAddress + slot
}

// nameOf returns nothing for an address that no name has.
func (t *nameTable) nameOf(address uint32) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.byAddress[address]
	if found == nil {
		return ""
	}
	t.used.MoveToFront(found)
	return found.Value.(named).name
}

func addressOf(of net.Addr) uint32 { return binary.BigEndian.Uint32(of.(*net.TCPAddr).IP.To4()) }
