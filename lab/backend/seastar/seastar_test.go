package seastar

import (
	"strings"
	"testing"
)

// The rule's cases, and the ceilings that follow from it for a container of 1 GiB.
func TestHeap(t *testing.T) {
	const gib = 1024 * mib
	small := func(asked int64) Memory { return Memory{Host: 16 * gib, Limit: gib, Shards: 1, Asked: asked * mib} }
	bare := small(700)
	bare.Reserve = new(int64)
	for name, c := range map[string]struct {
		memory Memory
		want   int64
		fails  string
	}{
		"small container, nothing asked": {small(0), fallbackHeap, ""},
		"--memory 750M alone":            {small(750), 0, "needed 700M available 476.8M"},
		"at the ceiling":                 {small(526), 526 * mib, ""},
		"above the ceiling":              {small(527), 0, "take --memory 526M or less"},
		"nothing reserved":               {bare, 700 * mib, ""},
		"VM of 2 GB, --memory 1G":        {Memory{Host: 2 * gib, MinFree: 44 * mib, Shards: 1, Asked: gib}, 0, "needed 974M"},
		"large host":                     {Memory{Host: 16 * gib, Shards: 2}, 16*gib - 1536*mib - 100*mib, ""},
		"no limit holds the host's":      {Memory{Host: gib, Shards: 1, Asked: 600 * mib}, 0, "insufficient physical memory"},
	} {
		got, err := c.memory.Heap()
		switch {
		case c.fails == "" && (err != nil || got != c.want):
			t.Errorf("%s: Heap() = %d, %v; want %d", name, got, err, c.want)
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: Heap() = %d, %v; want %q", name, got, err, c.fails)
		}
	}
}

// Three nodes with ScyllaDB's defaults on a kernel's default stock: the first takes all it asks
// for, the second what is left, the third fails.
func TestThreeNodesOnTheKernelsDefault(t *testing.T) {
	stock := AIO{Max: 65536, Shards: 1}
	first, err := stock.Take()
	if err != nil || first != 51_026 {
		t.Fatalf("the first node takes %d, %v", first, err)
	}
	stock.Used += first
	second, err := stock.Take()
	if err != nil || second != 65_536-51_026 {
		t.Fatalf("the second node takes %d, %v", second, err)
	}
	stock.Used += second
	third, err := stock.Take()
	if err == nil || !strings.Contains(err.Error(), "needed 51026 slots, 1027 at least, available 0") {
		t.Fatalf("the third node takes %d, %v", third, err)
	}
	err = AIO{Max: 65536, Shards: 1}.Fit(3)
	for _, want := range []string{"node 3 of 3", "sysctl -w fs.aio-max-nr=1048576", "--smp", "--reactor-backend=epoll"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Fit(3) = %v; want %q", err, want)
		}
	}
	if err := (AIO{Max: 65536, Shards: 1, Network: 1000}).Fit(5); err != nil {
		t.Errorf("five nodes with 1000 slots each: %v", err)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"0M": 0, "700M": 700 * mib, "1G": 1 << 30, "1GiB": 1 << 30, "512k": 512 << 10,
		"1024": 1024, "64MB": 64 * mib, "2T": 2 << 40, "100B": 100} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "M", "-1M", "1.5G", "1X", "10iB", "99999999999T", "1 G"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d", text, got)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	f.Add("700M")
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := ParseSize(text); err == nil && n < 0 {
			t.Errorf("ParseSize(%q) = %d", text, n)
		}
	})
}
