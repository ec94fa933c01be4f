package node

import (
	"runtime"

	pscpu "github.com/shirou/gopsutil/v4/cpu"
	pshost "github.com/shirou/gopsutil/v4/host"
	psmem "github.com/shirou/gopsutil/v4/mem"

	"jaegerlab/lab/record"
)

// localHost describes this machine; what can't be read stays empty.
func localHost() record.Host {
	host := record.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}
	host.Kernel, _ = pshost.KernelVersion()
	if cpus, err := pscpu.Info(); err == nil && len(cpus) > 0 {
		host.CPUModel = cpus[0].ModelName
	}
	if memory, err := psmem.VirtualMemory(); err == nil {
		host.MemoryBytes = int64(memory.Total)
	}
	return host
}

// LocalHost describes this machine: where the process runtime puts its nodes.
func LocalHost() record.Host { return localHost() }
