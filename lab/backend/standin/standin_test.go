package standin

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

var labArgs = []string{"--seeds", "scylla-1", "--cluster-name", "jaegerlab", "--smp", "1", "--memory", "700M",
	"--reserve-memory", "0M", "--overprovisioned", "1", "--developer-mode", "1", "--disable-version-check",
	"--max-networking-io-control-blocks", "1000",
	"--ring-delay-ms", "2000", "--skip-wait-for-gossip-to-settle", "0", "--auto-snapshot", "0", "--enable-tablets=false"}

func TestParseIsAsStrictAsScyllaDB(t *testing.T) {
	if _, err := Parse(labArgs); err != nil {
		t.Errorf("the lab's own command line: %v", err)
	}
	for line, want := range map[string]string{
		"--smp 1 --no-such-flag 3":                  "unrecognised option '--no-such-flag'",
		"--tablets-mode-for-new-keyspaces=disabled": "unrecognised option '--tablets-mode-for-new-keyspaces'", // not in 6.2.3
		"--blocked-reactor-notify-ms 999999999":     "'--blocked-reactor-notify-ms' cannot be specified more than once",
		"--smp 1 --smp 2":                           "'--smp' cannot be specified more than once",
		"--memory":                                  "the required argument for option '--memory' is missing",
		"--memory --smp 1":                          "the required argument for option '--memory' is missing",
		"--memory 700MM":                            "option '--memory' is invalid",
		"--smp one":                                 "option '--smp' is invalid",
		"--smp -1":                                  "option '--smp' is invalid",
		"--developer-mode yes":                      "it must be 0 or 1",
		"--disable-version-check=1":                 "it takes no argument",
		"scylla":                                    `"scylla" is no option`,
	} {
		if _, err := Parse(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%s) = %v; want %q", line, err, want)
		}
	}
}

// machine is a container of 1 GiB on a host of 16 GiB with the kernel's default stock.
func machine(t *testing.T, files map[string]string) Machine {
	t.Helper()
	root := fstest.MapFS{}
	for name, text := range map[string]string{"proc/meminfo": "MemFree: 1 kB\nMemTotal:       16777216 kB\n",
		"proc/sys/vm/min_free_kbytes": "67584\n", "proc/sys/fs/aio-max-nr": "65536\n", "proc/sys/fs/aio-nr": "0\n",
		"sys/fs/cgroup/memory.max": "1073741824\n"} {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	for name, text := range files {
		delete(root, name)
		if text != "" {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	m, err := ReadMachine(root)
	if err != nil {
		t.Fatal(err)
	}
	m.CPUs = 2
	return m
}

func TestAdmitRefusesWhatScyllaDBRefuses(t *testing.T) {
	const v2, v1, aio = "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes", "proc/sys/fs/aio-nr"
	files := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		args  string
		files map[string]string
		want  string // of the error; "" = it starts
	}{
		"the lab's":                {strings.Join(labArgs, " "), nil, ""},
		"--memory 750M in 1 GiB":   {"--smp 1 --memory 750M", nil, "needed 700M available 476.8M"},
		"the same under cgroup v1": {"--smp 1 --memory 750M", files(v2, "", v1, "1073741824\n"), "insufficient"},
		"no limit":                 {"--smp 1 --memory 750M", files(v2, "max\n"), ""},
		"no limit under cgroup v1": {"--smp 1 --memory 750M", files(v2, "", v1, "9223372036854771712\n"), ""},
		"more shards than CPUs":    {"--smp 4", nil, "insufficient processing units"},
		"no developer mode":        {"--smp 1 --memory 700M --reserve-memory 0M --developer-mode 0", nil, "memory per shard too low"},
		"no slots left":            {"--smp 1", files(aio, "65000"), "minimum AIO requirements"},
		"few slots asked for":      {"--smp 1 --max-networking-io-control-blocks 1000", files(aio, "60000"), ""},
	} {
		options, err := Parse(strings.Fields(c.args))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		grant, err := Admit(options, machine(t, c.files))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: Admit() = %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: Admit() = %+v, %v; want %q", name, grant, err, c.want)
		}
	}
}

func TestReadMachineNamesWhatItLacks(t *testing.T) {
	_, err := ReadMachine(fstest.MapFS{"proc/meminfo": &fstest.MapFile{Data: []byte("MemTotal: 1 kB\n")}})
	if err == nil || !strings.Contains(err.Error(), "/proc/sys/vm/min_free_kbytes") {
		t.Errorf("ReadMachine() = %v", err)
	}
}

func TestPageSaysFirstThatItStandsIn(t *testing.T) {
	start := time.Unix(1000, 0)
	p := page{grant: Grant{Shards: 1, Heap: 734003200, Slots: 2026}, started: start,
		now: func() time.Time { return start.Add(90 * time.Second) }, running: func() bool { return true }}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text := w.Body.String()
	for _, want := range []string{"\njaegerlab_stand_in 1\n", "\njaegerlab_stand_in_aio_slots 2026\n",
		"\njaegerlab_stand_in_cassandra_up 1\n", "\njaegerlab_stand_in_uptime_seconds 90\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("page lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\nscylla_") || w.Header().Get(Header) != "1" {
		t.Errorf("the page pretends to be ScyllaDB's: %s", text)
	}
}

func TestEnvironmentOfCassandra(t *testing.T) {
	options, err := Parse(labArgs)
	if err != nil {
		t.Fatal(err)
	}
	env := options.environment()
	for _, want := range []string{"CASSANDRA_SEEDS=scylla-1", "CASSANDRA_CLUSTER_NAME=jaegerlab", "MAX_HEAP_SIZE=400M",
		"JVM_EXTRA_OPTS=-Dcassandra.ring_delay_ms=2000 -Dcassandra.skip_wait_for_gossip_to_settle=0 " +
			"-Dcassandra.config.allow_system_properties=true -Dcassandra.settings.auto_snapshot=false"} {
		if !slices.Contains(env, want) {
			t.Errorf("environment %q lacks %s", env, want)
		}
	}
}
