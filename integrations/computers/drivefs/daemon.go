package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// How long a mount waits until what an earlier one has left is on the drive.
const leftPatience = time.Second

const (
	lockPatience = 10 * time.Second
	lockPause    = 50 * time.Millisecond
)

var folderLock *os.File

var errInvalid = errors.New("it is not valid")

// daemon has the drives of all computers of a host.
type daemon struct {
	backendSocket, stageDir string
	cache                   *cache

	mu        sync.Mutex
	computers map[string]*computer
}

// computer is one computer's mount, if it has one, and what it has not sent.
type computer struct {
	changing sync.Mutex // held while it is mounted or unmounted

	// Guarded by the daemon's mu.
	outbox  *outbox
	drive   *drive
	spaceID string
}

// newDaemon sends what an earlier process has left.
func newDaemon(backendSocket, stageDir string, c *cache) (*daemon, error) {
	m := &daemon{backendSocket: backendSocket, stageDir: stageDir, cache: c, computers: map[string]*computer{}}
	if err := os.MkdirAll(stageDir, 0o700); err != nil {
		return nil, err
	}
	if err := lockFolder(stageDir); err != nil {
		return nil, err
	}
	folders, err := os.ReadDir(stageDir)
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		if _, err := m.computer(folder.Name()); err != nil {
			fmt.Fprintf(os.Stderr, "The journal of %s: %v\n", folder.Name(), err)
		}
	}
	return m, nil
}

// computer returns a computer, whose journal is read the first time.
func (m *daemon) computer(id string) (*computer, error) {
	if !plainName.MatchString(id) {
		return nil, fmt.Errorf("the computer's id: %w", errInvalid)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.computers[id]; known != nil {
		return known, nil
	}
	o, err := openOutbox(id, m.stageDir, newBackend(m.backendSocket, id), m.cache)
	if err != nil {
		return nil, err
	}
	added := &computer{outbox: o, spaceID: o.spaceID}
	m.computers[id] = added
	return added, nil
}

func (m *daemon) driveOf(id string) *drive {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.computers[id]; known != nil {
		return known.drive
	}
	return nil
}

// mount mounts a computer's drive. It does nothing if that is so already.
func (m *daemon) mount(ctx context.Context, id string, spec mountSpec) error {
	if !plainName.MatchString(spec.SpaceID) {
		return fmt.Errorf("the space's id: %w", errInvalid)
	}
	c, err := m.computer(id)
	if err != nil {
		return err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	if old := m.driveOf(id); old != nil {
		if old.spec.isSameMount(spec) && isMounted(spec.Target) {
			return nil
		}
		err := old.close(leftPatience)
		m.set(c, nil, spec.SpaceID)
		if err != nil {
			return err
		}
	}
	left, stop := context.WithTimeout(ctx, leftPatience)
	defer stop()
	c.outbox.settle(left)
	d, err := mountDrive(ctx, spec, c.outbox, m.cache)
	if err != nil {
		return err
	}
	if err := d.serveSync(); err != nil {
		d.close(0)
		return fmt.Errorf("the sync socket: %w", err)
	}
	m.set(c, d, spec.SpaceID)
	return nil
}

func (m *daemon) set(c *computer, d *drive, spaceID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.drive, c.spaceID = d, spaceID
}

func (m *daemon) unmount(id string, timeout time.Duration) error {
	m.mu.Lock()
	c := m.computers[id]
	m.mu.Unlock()
	if c == nil {
		return nil
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	d := m.driveOf(id)
	if d == nil {
		return nil
	}
	err := d.close(timeout)
	m.set(c, nil, d.spec.SpaceID)
	return err
}

// states lists the mounts, and the computers without one that have something to send.
func (m *daemon) states() []mountState {
	m.mu.Lock()
	defer m.mu.Unlock()
	states := []mountState{}
	for id, c := range m.computers {
		state := mountState{ComputerID: id, SpaceID: c.spaceID, Access: "none"}
		if d := c.drive; d != nil {
			state.IsMounted, state.unsent = true, d.state()
			d.mu.Lock()
			state.Access = d.access
			d.mu.Unlock()
		} else if state.unsent = c.outbox.unsent(); state.PendingFiles == 0 {
			continue
		}
		states = append(states, state)
	}
	return states
}

// unmountAll ends all mounts. What was not sent stays in the journal.
func (m *daemon) unmountAll(timeout time.Duration) {
	m.mu.Lock()
	var ids []string
	for id := range m.computers {
		ids = append(ids, id)
	}
	m.mu.Unlock()
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() { m.unmount(id, timeout) })
	}
	all.Wait()
}

// lockFolder keeps a second process away from the journal. One that was told to end may need a moment.
func lockFolder(path string) error {
	file, err := os.OpenFile(filepath.Join(path, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	for began := time.Now(); ; time.Sleep(lockPause) {
		if err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			folderLock = file // open until this process ends
			return nil
		}
		if time.Since(began) > lockPatience {
			return fmt.Errorf("another process uses %s: %w", path, err)
		}
	}
}
