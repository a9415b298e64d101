package main

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

type size struct{ Cols, Rows uint16 }

// openTerminal returns our side of a new terminal, and the side of its programs.
func openTerminal(of size) (*os.File, uintptr, error) {
	fd, err := syscall.Open("/dev/ptmx", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	master := os.NewFile(uintptr(fd), "terminal")
	var number, locked int32
	err = control(master, syscall.TIOCSPTLCK, unsafe.Pointer(&locked))
	if err == nil {
		err = control(master, syscall.TIOCGPTN, unsafe.Pointer(&number))
	}
	if err == nil {
		err = resizeTerminal(master, of)
	}
	if err == nil {
		fd, err = syscall.Open(fmt.Sprintf("/dev/pts/%d", number), syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	}
	if err != nil {
		master.Close()
		return nil, 0, err
	}
	return master, uintptr(fd), nil
}

func resizeTerminal(master *os.File, to size) error {
	window := [4]uint16{to.Rows, to.Cols}
	return control(master, syscall.TIOCSWINSZ, unsafe.Pointer(&window))
}

func control(file *os.File, what uintptr, value unsafe.Pointer) error {
	connection, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failure syscall.Errno
	if err := connection.Control(func(fd uintptr) {
		_, _, failure = syscall.Syscall(syscall.SYS_IOCTL, fd, what, uintptr(value))
	}); err != nil || failure == 0 {
		return err
	}
	return failure
}
