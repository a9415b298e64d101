package main

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Most open files take a descriptor of this program, and so do files that are not sent. These are what one computer may
// have at most, so that it takes none of the others.
const (
	maxHandles     = 4_096
	maxUnsentFiles = 1_024
	maxDescriptors = 1 << 20
	unsentPause    = 10 * time.Millisecond
)

// handleLimits are maxHandles for one computer, or less where the machine allows few descriptors, and those for all.
var handleLimits = struct{ one, all int64 }{maxHandles, maxDescriptors}

// handleCount is of all computers.
var handleCount atomic.Int64

// raiseLimits lets this program have descriptors for many computers, as far as the machine allows.
func raiseLimits() {
	limit := syscall.Rlimit{Cur: maxDescriptors, Max: maxDescriptors}
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	handleLimits.one = min(maxHandles, int64(limit.Cur/8))
	handleLimits.all = int64(limit.Cur / 2)
}

// refuseHandle says whether the computer has too many open files and folders.
func (d *drive) refuseHandle() bool {
	return d.handles.count() >= handleLimits.one || handleCount.Load() >= handleLimits.all
}

// waitForSent waits while too many new files are not on the drive yet.
func (d *drive) waitForSent(ctx context.Context) error {
	ctx, stop := context.WithTimeoutCause(ctx, patience, syscall.EIO)
	defer stop()
	for {
		d.mu.Lock()
		unsent := len(d.unsent)
		d.mu.Unlock()
		if unsent < maxUnsentFiles {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(unsentPause):
		}
	}
}

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
	handleCount.Add(1)
	return h.last
}

func (h *handles) count() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(len(h.open))
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
	if each != nil {
		handleCount.Add(-1)
	}
	delete(h.open, number)
	return each
}
