package setup

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// healthy is a machine on which everything is there; tests take things away.
func healthy() probe {
	p := probe{
		lookup: machineWith(map[string]string{"/usr/bin/java": says17}, "/usr/bin/java", nil),
		readFile: files(map[string]string{"/proc/meminfo": "MemTotal: 16777216 kB\n", "/proc/sys/fs/aio-max-nr": "1048576\n",
			"/proc/sys/fs/aio-nr": "0\n", "/sys/fs/cgroup/cgroup.controllers": "cpu memory"}),
		docker: func(context.Context) (Daemon, error) {
			return Daemon{Version: "28.0.0", OS: "Debian", Arch: "amd64", CPUs: 8, MemoryBytes: 16 << 30, CgroupVersion: 2}, nil
		},
		images: func(ctx context.Context) (*Catalog, error) {
			store := fakeStore{}
			for _, prog := range programs {
				store[prog.public] = image{}
			}
			return findImages(ctx, store, nil)
		},
		built: func(program) (string, error) { return "", nil }, jars: func() bool { return true },
		free: func(string) (int64, error) { return 100 << 30, nil }, writable: func(string) bool { return true },
		listen: func(string) error { return nil }, cpus: 8, cache: "/cache", results: "/results",
	}
	p.lookPath = func(name string) (string, error) { return "/usr/bin/" + name, nil }
	return p
}

func files(texts map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		text, there := texts[path]
		if !there {
			return nil, os.ErrNotExist
		}
		return []byte(text), nil
	}
}

func checkNamed(t *testing.T, checks []Check, name string) Check {
	t.Helper()
	for _, check := range checks {
		if check.Name == name {
			return check
		}
	}
	t.Fatalf("no check %q", name)
	return Check{}
}

func TestDoctorOnAHealthyMachine(t *testing.T) {
	for _, check := range healthy().checks(t.Context()) {
		if check.State != OK || check.Remedy != "" || check.Have == "" || check.Need == "" {
			t.Errorf("%+v", check)
		}
	}
}

// Each thing taken away shows in its own check, with what is there, the state and a remedy.
func TestDoctorSeesWhatIsNotThere(t *testing.T) {
	noTool := func(tool string) func(*probe) {
		return func(p *probe) {
			p.lookPath = func(name string) (string, error) {
				if name == tool {
					return "", errors.New("not found")
				}
				return "/usr/bin/" + name, nil
			}
		}
	}
	cases := []struct {
		check  string
		change func(*probe)
		state  State
		have   string
		remedy string
	}{
		{"docker", func(p *probe) {
			p.docker = func(context.Context) (Daemon, error) { return Daemon{}, errors.New("ask Docker: no such file") }
		}, Warn, "no such file", "LAB_RUNTIME=process"},
		{"docker", func(p *probe) {
			p.docker = func(context.Context) (Daemon, error) { return Daemon{}, os.ErrPermission }
		}, Warn, "permission", "group docker"},
		{"go", noTool("go"), Lack, "no go", "go.dev"},
		{"java", func(p *probe) { // case 27
			p.lookup = machineWith(map[string]string{"/usr/bin/java": says21}, "/usr/bin/java", nil)
		}, Warn, "21.0.2", "Java 17"},
		{"maven", func(p *probe) { noTool("mvn")(p); p.jars = func() bool { return false } }, Warn, "no mvn", "Maven"},
		{"maven", noTool("mvn"), OK, "already there", ""},
		{"memory", func(p *probe) {
			p.docker = func(context.Context) (Daemon, error) { return Daemon{MemoryBytes: 2 << 30}, nil }
		}, Warn, "2.0 GiB", "fewer nodes"},
		{"cpus", func(p *probe) {
			p.docker = func(context.Context) (Daemon, error) { return Daemon{CPUs: 2}, nil }
		}, Warn, "2", "overcommitted"},
		{"disk (cache)", func(p *probe) { p.free = func(string) (int64, error) { return 1 << 29, nil } },
			Warn, "0.5 GiB", "LAB_CACHE"},
		{"ports", func(p *probe) {
			p.listen = func(address string) error {
				if address == "127.0.0.2" {
					return errors.New("can't assign requested address")
				}
				return nil
			}
		}, Warn, "127.0.0.2", "cassandra:1"},
		{"cgroups", func(p *probe) { p.writable = func(string) bool { return false } }, Warn, "not writable", "root"},
		{"programs", func(p *probe) { p.built = func(program) (string, error) { return "not built yet", nil } }, Warn,
			"jaeger-v1-collector", "make setup"},
		{"image jaeger", func(p *probe) {
			p.images = func(ctx context.Context) (*Catalog, error) { return findImages(ctx, fakeStore{}, nil) }
		}, Warn, "absent", "docker pull jaegertracing/jaeger:2.13.0"}, // case 36
	}
	for _, c := range cases {
		p := healthy()
		c.change(&p)
		got := checkNamed(t, p.checks(t.Context()), c.check)
		if got.State != c.state || !strings.Contains(got.Have, c.have) || !strings.Contains(got.Remedy, c.remedy) {
			t.Errorf("%s: got %+v; want state %s, have %q, remedy %q", c.check, got, c.state, c.have, c.remedy)
		}
	}
}

// Case 25: the slots for asynchronous I/O are one number for the host, and others use it too.
func TestDoctorAIO(t *testing.T) {
	cases := []struct {
		name, most, used, system string
		state                    State
		have                     string
	}{
		{"the kernel's default", "65536", "0", "Debian", OK, "65536, 0 in use"},
		{"mostly in use", "65536", "60000", "Debian", Warn, "65536, 60000 in use"},
		{"too few", "4096", "0", "Debian", Warn, "4096"},
		{"just enough", "6078", "0", "Debian", OK, "6078"},
		{"a virtual machine's kernel is not this one", "4096", "0", "Docker Desktop", Warn, "virtual machine"},
	}
	for _, c := range cases {
		p := healthy()
		p.readFile = files(map[string]string{"/proc/sys/fs/aio-max-nr": c.most + "\n", "/proc/sys/fs/aio-nr": c.used + "\n"})
		got := p.checkAIO(Daemon{OS: c.system}, nil)
		if got.State != c.state || !strings.Contains(got.Have, c.have) {
			t.Errorf("%s: got %+v; want %s, %q", c.name, got, c.state, c.have)
		}
		if got.State == Warn && got.Remedy == "" {
			t.Errorf("%s: no remedy", c.name)
		}
	}
	if AIONeed(3) != 6078 {
		t.Errorf("three nodes need %d slots, want 3 x 2026", AIONeed(3))
	}
}

func TestDiskFreeOfAFolderToBe(t *testing.T) {
	free, err := diskFree(t.TempDir() + "/not/there/yet")
	if err != nil || free <= 0 {
		t.Errorf("got %d, %v", free, err)
	}
}
