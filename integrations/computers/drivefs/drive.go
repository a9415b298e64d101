package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	// Contents of one computer that are sent at once: large ones, and small ones.
	maxSends      = 4
	maxSmallSends = 2 * maxTogetherRequests * maxTogetherFiles
	// For the requests of one computer that wait for the worker. It can have any number of them.
	maxRequestBytes = 64 << 20
)

// What the worker asks for (PUT /mounts/{computerId}).
type mountSpec struct {
	SpaceID    string `json:"spaceId"`
	Name       string `json:"name"`
	Target     string `json:"target"`
	UID        uint32 `json:"uid"`
	GID        uint32 `json:"gid"`
	LocalDir   string `json:"localDir"`
	AsideDir   string `json:"asideDir"`
	SyncSocket string `json:"syncSocket"`
	// What the worker would answer to GET /root. It sends this along, so that a computer that starts does not wait.
	Root *rootAnswer `json:"root"`
}

// isSameMount tells whether two orders ask for the same mount. What the worker sends along of the drive may differ.
func (s mountSpec) isSameMount(other mountSpec) bool {
	s.Root, other.Root = nil, nil
	return s == other
}

// drive is a space's drive as one computer sees it: a mount, the tree that is known of it, and what was written there.
type drive struct {
	fuse.RawFileSystem
	spec     mountSpec
	owner    fuse.Owner
	outbox   *outbox
	cache    *cache
	local    *os.Root // nil: nothing stays local
	localUID int
	localGID int
	notes    *notes
	// One place for each content that is sent.
	sends, smallSends chan struct{}
	ended             context.Context
	end               context.CancelFunc
	served            chan struct{}
	server            *fuse.Server

	mu         sync.Mutex
	lastNumber uint64
	nodes      map[uint64]*node
	items      map[string]*node
	containers map[string]*node // folders, by the id that their children have as parent
	root       *node
	revision   int64
	epoch      string
	access     string
	freeBytes  *int64 // nil: no quota
	maxFile    int64
	removed    map[string]int64 // items that were removed here, and with which revision
	loadings   int              // folders that are being listed
	unsent     map[*node]bool
	// Bytes of files that are not sent, which the drive does not count yet.
	unsentBytes int64
	// Ends the request for changes that waits for some. nil: there is none.
	stopWaiting func()
	refreshers  []chan struct{} // closed when what has changed by now is known here

	handles handles
	parts   *parts
}

// mountDrive makes the drive visible at its target.
func mountDrive(ctx context.Context, spec mountSpec, o *outbox, c *cache) (*drive, error) {
	d := &drive{RawFileSystem: fuse.NewDefaultRawFileSystem(), spec: spec, outbox: o, cache: c,
		owner: fuse.Owner{Uid: spec.UID, Gid: spec.GID}, notes: newNotes(), sends: make(chan struct{}, maxSends),
		smallSends: make(chan struct{}, maxSmallSends), served: make(chan struct{}), nodes: map[uint64]*node{}, items: map[string]*node{},
		containers: map[string]*node{}, removed: map[string]int64{}, unsent: map[*node]bool{}}
	d.handles.open = map[uint64]*handle{}
	d.parts = newParts(d)
	d.ended, d.end = context.WithCancel(context.Background())
	root := spec.Root
	if root == nil {
		root = &rootAnswer{}
		if err := o.backend.ask(ctx, "GET", "/root", nil, nil, root); err != nil {
			return nil, err
		}
	}
	d.revision, d.epoch, d.access = root.Revision, root.Epoch, root.Access
	d.freeBytes, d.maxFile = root.FreeBytes, root.MaxFileBytes
	root.Item.Kind = "folder"
	d.root = d.know(root.Item)
	if d.root.number != fuse.FUSE_ROOT_ID {
		return nil, fmt.Errorf("the root is node %d", d.root.number)
	}
	if err := d.openLocal(); err != nil {
		return nil, fmt.Errorf("the local folder: %w", err)
	}
	if err := unmountDead(spec.Target); err != nil {
		return nil, err
	}
	o.attach(d)
	isRoot := os.Geteuid() == 0
	server, err := fuse.NewServer(d, spec.Target, &fuse.MountOptions{
		FsName: "drive", Name: "atrium", AllowOther: isRoot, DirectMountStrict: isRoot,
		Options: []string{"default_permissions"}, MaxBackground: 64, DisableXAttrs: true, EnableSymlinkCaching: true,
		ExplicitDataCacheControl: true,
		MaxInflightRequestBytes:  maxRequestBytes,
	})
	if err != nil {
		o.attach(nil)
		d.closeLocal()
		return nil, fmt.Errorf("mount: %w", err)
	}
	d.server = server
	go func() {
		defer close(d.served)
		server.Serve()
		handleCount.Add(-d.handles.count()) // nobody closes those any more
	}()
	// The kernel learns the root's mode before any note can come. Otherwise it would drop the first answer as outdated, and
	// refuse everybody.
	os.Stat(spec.Target)
	go d.notes.pass(server)
	go d.follow(d.ended)
	go d.watchWriters()
	return d, nil
}

// close ends the mount, also if that cannot be taken away. What could not be sent within the time is left in the outbox.
// It is called once.
func (d *drive) close(timeout time.Duration) error {
	d.syncAll(timeout)
	err := unmountLazily(d.spec.Target)
	select {
	case <-d.served:
	case <-time.After(time.Second):
		// A program still has a file open. Its requests are answered until it closes it.
	}
	d.syncAll(0)
	d.end()
	d.allowNothing() // nobody would take it away later
	close(d.notes.isEnded)
	d.leaveUnsent()
	d.outbox.attach(nil)
	d.closeLocal()
	return err
}

// refuse checks what the computer may do. Each operation asks it first.
func (d *drive) refuse(isChange bool) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.access == "none" {
		return fuse.EACCES
	}
	if isChange && d.access != "write" {
		return fuse.EROFS
	}
	return fuse.OK
}

func (d *drive) String() string { return "drive" }

// status is what the kernel is told of an error.
func (d *drive) status(err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	errno := errnoOf(err)
	if errno == syscall.EACCES {
		if refused := d.refuse(true); refused != fuse.OK {
			return refused
		}
	}
	return fuse.Status(errno)
}
