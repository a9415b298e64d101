package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
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
