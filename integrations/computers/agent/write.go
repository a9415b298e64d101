package main

import (
	"crypto/rand"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// Guards the moment between a look at a name and its use. Otherwise two callers could find it free, and the second would
// overwrite the first one's file.
var names sync.Mutex

// writeFile writes a temporary file and gives it the name of the target. Readers see all old or all new content, and a
// write that is cut leaves the old one. When it returns, the new content is on the disk.
func writeFile(s *stream, path string, asked *fileRequest) (any, error) {
	begun, err := slowly(func() (*writing, error) { return beginWrite(path, asked) })
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(diskFile{begun.file}, s)
	return slowly(func() (any, error) {
		var answer any
		if err == nil {
			answer, err = begun.end(asked)
		}
		begun.file.Close()
		if err != nil {
			syscall.Unlink(begun.temporary)
		}
		return answer, err
	})
}

type writing struct {
	file              *os.File
	temporary, target string
}

func beginWrite(path string, asked *fileRequest) (*writing, error) {
	if asked.Parents {
		if err := makeFolders(folderOf(path)); err != nil {
			return nil, err
		}
	}
	// Write what a link points to; the link stays.
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		target = path
	}
	old, err := currentOf(target, asked)
	if err != nil {
		return nil, err
	}
	if err := refuseKept(target); err != nil {
		return nil, err
	}
	temporary := temporaryBeside(target)
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, err
	}
	giveTo(ownerOf(target, old), func(user, group int) error { return file.Chown(user, group) })
	if asked.Mode == nil && old != nil {
		mode := old.Mode & 0o7777
		asked.Mode = &mode
	}
	return &writing{file, temporary, target}, nil
}

func (w *writing) end(asked *fileRequest) (any, error) {
	if asked.Mode != nil {
		if err := syscall.Fchmod(int(w.file.Fd()), *asked.Mode); err != nil {
			return nil, err
		}
	}
	if err := fsync(w.file); err != nil {
		return nil, err
	}
	isNew, err := w.rename(asked)
	if err != nil {
		return nil, err
	}
	// The rename has changed its ctime, and so its ETag.
	var stat syscall.Stat_t
	if err := syscall.Fstat(int(w.file.Fd()), &stat); err != nil {
		return nil, err
	}
	return map[string]any{"size": stat.Size, "etag": etagOf(&stat), "isNew": isNew}, syncFolder(folderOf(w.target))
}

func (w *writing) rename(asked *fileRequest) (isNew bool, err error) {
	names.Lock()
	defer names.Unlock()
	replaced, err := currentOf(w.target, asked)
	if err != nil {
		return false, err
	}
	return replaced == nil, syscall.Rename(w.temporary, w.target)
}

// currentOf returns the file that is there now, or nil. It refuses what the request does not expect, and a folder, a
// FIFO or a device.
func currentOf(path string, asked *fileRequest) (*syscall.Stat_t, error) {
	current := &syscall.Stat_t{}
	if syscall.Stat(path, current) != nil {
		current = nil
	} else if typeOf(current) != "file" {
		return nil, refusal("NOT_A_FILE")
	}
	isExpected := asked.IfMatch == nil || current != nil && (*asked.IfMatch == "*" || *asked.IfMatch == etagOf(current))
	if !isExpected || asked.IfNew && current != nil {
		return nil, refusal("PRECONDITION_FAILED")
	}
	return current, nil
}

// temporaryBeside returns a new name in the same folder, for a file that is not complete yet or is about to be removed.
func temporaryBeside(path string) string {
	var name [9]byte
	rand.Read(name[:])
	return folderOf(path) + "/.atrium-" + hex.EncodeToString(name[:]) + ".tmp"
}
