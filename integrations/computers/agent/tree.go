package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// A variable of each process, which its descendants inherit unless a program removes it.
const processMarker = "ATRIUM_PROCESS_ID"

const maxRounds = 100

type task struct{ pid, parent, session int }

// signalTree sends a signal to all that a process has started: its session, its descendants, and processes that carry
// its marker. SIGKILL is repeated until none is left. It returns how many processes it has found.
func signalTree(id string, leader int, number syscall.Signal) int {
	found := map[int]bool{}
	for range maxRounds {
		tree := treeOf(id, leader)
		for _, pid := range tree {
			found[pid] = true
			syscall.Kill(pid, number)
		}
		if number != syscall.SIGKILL || len(tree) == 0 {
			break
		}
		runtime.Gosched()
	}
	return len(found)
}

// treeOf returns the living processes of a tree. `leader` is 0 once it has ended.
func treeOf(id string, leader int) []int {
	tasks := livingTasks()
	isIn := map[int]bool{}
	for _, each := range tasks {
		isIn[each.pid] = leader != 0 && each.session == leader || hasMarker(each.pid, id)
	}
	for isGrowing := true; isGrowing; {
		isGrowing = false
		for _, each := range tasks {
			if !isIn[each.pid] && isIn[each.parent] {
				isIn[each.pid], isGrowing = true, true
			}
		}
	}
	var tree []int
	for _, each := range tasks {
		if isIn[each.pid] {
			tree = append(tree, each.pid)
		}
	}
	return tree
}

func livingTasks() []task {
	var tasks []task
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == 1 || pid == os.Getpid() {
			continue
		}
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		// The program's name is in parentheses and may itself contain parentheses.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 4 || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		session, _ := strconv.Atoi(fields[3])
		tasks = append(tasks, task{pid, parent, session})
	}
	return tasks
}

func hasMarker(pid int, id string) bool {
	environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // it has ended, or we may not read it
	return strings.Contains("\x00"+string(environment), "\x00"+processMarker+"="+id+"\x00")
}

// The names of the signals from 1 on.
var signalNames = strings.Fields("HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD " +
	"CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS")

func signalName(number syscall.Signal) string {
	if int(number) > len(signalNames) {
		return fmt.Sprintf("SIG%d", number)
	}
	return "SIG" + signalNames[number-1]
}

func signalNumber(name string) syscall.Signal {
	for at, each := range signalNames {
		if "SIG"+each == name {
			return syscall.Signal(at + 1)
		}
	}
	return 0
}
