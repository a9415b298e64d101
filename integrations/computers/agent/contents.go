package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// Files that the kernel makes up claim to be empty. At most this much of them is read.
const maxMadeUpBytes = 1 << 20

// A file whose reads and writes wait their turn.
type diskFile struct{ file *os.File }

func (f diskFile) Read(into []byte) (int, error) {
	return slowly(func() (int, error) { return f.file.Read(into) })
}

func (f diskFile) Write(from []byte) (int, error) {
	return slowly(func() (int, error) { return f.file.Write(from) })
}

func (f diskFile) Seek(offset int64, whence int) (int64, error) { return f.file.Seek(offset, whence) }

// readFile sends a description of the file, then its bytes or a part of them.
func readFile(s *stream, path string, part *fileRequest) error {
	file, err := slowly(func() (*os.File, error) { return openPlain(path) })
	if err != nil {
		return err
	}
	defer file.Close()
	var stat syscall.Stat_t
	if err := syscall.Fstat(int(file.Fd()), &stat); err != nil {
		return err
	}
	// Look at the opened file, not at the path: a link cannot lead it elsewhere any more.
	if real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd())); err != nil || isOfProcess(real) {
		return refusal("FILE_ACCESS_DENIED")
	}
	size := sizeOf(&stat)
	var content io.ReadSeeker = diskFile{file}
	if size == 0 {
		madeUp, err := io.ReadAll(io.LimitReader(diskFile{file}, maxMadeUpBytes))
		if err != nil {
			return err
		}
		size, content = int64(len(madeUp)), bytes.NewReader(madeUp)
	}
	start, end, err := rangeOf(part, size)
	if err != nil {
		return err
	}
	if _, err := content.Seek(start, io.SeekStart); err != nil {
		return err
	}
	s.answer(map[string]any{
		"size": size, "mode": stat.Mode & 0o7777, "modifiedAt": timeOf(&stat), "etag": etagOf(&stat), "start": start, "end": end,
	})
	if _, err := io.CopyN(s, content, end-start); err != nil {
		s.Close() // the file became shorter, so the size that was sent is wrong
	}
	s.CloseWrite()
	return nil
}

// isOfProcess tells whether a file describes a process, with its variables and memory. Permission to read files is not
// permission to run programs.
func isOfProcess(path string) bool {
	rest, isInProc := strings.CutPrefix(path, "/proc/")
	pid, _, isBelow := strings.Cut(rest, "/")
	return isInProc && isBelow && strings.Trim(pid, "0123456789") == ""
}

func rangeOf(part *fileRequest, size int64) (start, end int64, err error) {
	if part.Suffix != nil {
		return max(0, size-*part.Suffix), size, nil
	}
	if part.Start == nil {
		return 0, size, nil
	}
	if *part.Start >= size {
		return 0, 0, refusal("RANGE_NOT_SATISFIABLE")
	}
	end = size
	if part.End != nil {
		end = min(*part.End+1, size)
	}
	return *part.Start, end, nil
}

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
	if err := w.file.Sync(); err != nil {
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
