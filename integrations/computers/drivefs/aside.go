package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The person who made the computer may lose the right to change the drive while files are on their way there. If they get
// it back within this time, the files go on. Afterwards the files are put into a folder of the home.
var asidePatience = 10 * time.Minute

const maxAsideNames = 1_000

// aside is the folder for files that never get into the drive. The zero value has none.
type aside struct {
	path     string
	uid, gid int
	count    int
}

func (a *aside) notice() string {
	if a.count == 0 {
		return ""
	}
	return fmt.Sprintf("%d files are not in the drive, because the person who made the computer may not change it any more. "+
		"They are in the folder %s of the home.", a.count, filepath.Base(a.path))
}

// refused notes that an entry could not be sent. One that is refused for long goes into the home.
func (o *outbox) refused(e *entry, err error) {
	o.fail(err)
	o.mu.Lock()
	defer o.mu.Unlock()
	if isPassing(err) {
		return
	}
	if e.refusedAt.IsZero() {
		e.refusedAt = time.Now()
		o.tell()
	}
	if !isStatus(err, 403) || time.Since(e.refusedAt) < asidePatience || o.aside.path == "" {
		return
	}
	if err := o.aside.put(e, o.journal.dataOf(e.Number)); err != nil {
		o.failure = fmt.Sprintf("Files that the drive does not take could not be put into the home: %v", err)
		return
	}
	o.aside.count++
	o.failure = ""
	o.drop(e)
	o.journal.remove(e.Number)
}

// put copies a content into the folder, under a name that is free there. Programs of the computer can change the folder,
// and put links there, so it is only used through os.Root.
func (a *aside) put(e *entry, data string) error {
	folder, err := a.open()
	if err != nil {
		return err
	}
	defer folder.Close()
	from, err := os.Open(data)
	if err != nil {
		return err
	}
	defer from.Close()
	to, name, err := createFree(folder, e.Name)
	if err != nil {
		return err
	}
	if e.Executable {
		err = to.Chmod(0o755)
	}
	if err == nil {
		err = to.Chown(a.uid, a.gid)
	}
	if err == nil {
		_, err = io.Copy(to, from)
	}
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		folder.Remove(name)
		return err
	}
	modified := time.UnixMilli(e.ModifiedAtMs)
	folder.Chtimes(name, modified, modified)
	return nil
}

func createFree(folder *os.Root, name string) (*os.File, string, error) {
	ending := filepath.Ext(name)
	for number := 1; ; number++ {
		free := name
		if number > 1 {
			free = fmt.Sprintf("%s (%d)%s", name[:len(name)-len(ending)], number, ending)
		}
		file, err := folder.OpenFile(free, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if !errors.Is(err, os.ErrExist) || number == maxAsideNames {
			return file, free, err
		}
	}
}

// open makes the folder, if need be, for the owner of the home that it is in. No part of its path may be a link.
func (a *aside) open() (*os.Root, error) {
	home, err := openPlainFolder(filepath.Dir(a.path))
	if err != nil {
		return nil, err
	}
	defer syscall.Close(home)
	var stat syscall.Stat_t
	if err := syscall.Fstat(home, &stat); err != nil {
		return nil, err
	}
	a.uid, a.gid = int(stat.Uid), int(stat.Gid)
	name := filepath.Base(a.path)
	if err := unix.Mkdirat(home, name, 0o755); err == nil {
		unix.Fchownat(home, name, a.uid, a.gid, unix.AT_SYMLINK_NOFOLLOW)
	}
	folder, err := openPlainFolder(a.path)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(folder)
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", folder))
}
