package main

import (
	"os"
	"sync"
)

// handle is an open file or folder.
type handle struct {
	node     *node
	canWrite bool
	local    *os.File // of a local file

	mu sync.Mutex
	// What was last read from, and which content that is.
	file *os.File
	key  string
	// The entries of a folder, from the first read on.
	entries []dirEntry
}

type handles struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]*handle
}

func (h *handles) add(each *handle) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	h.open[h.last] = each
	return h.last
}

func (h *handles) get(number uint64) *handle {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open[number]
}

func (h *handles) remove(number uint64) *handle {
	h.mu.Lock()
	defer h.mu.Unlock()
	each := h.open[number]
	delete(h.open, number)
	return each
}
