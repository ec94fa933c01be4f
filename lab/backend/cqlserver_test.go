package backend

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gocql/gocql"
)

// cqlServer is a small CQL server (protocol version 4) that answers OPTIONS, STARTUP, REGISTER,
// PREPARE, EXECUTE and QUERY from tables in memory. WHERE clauses are not looked at.
type cqlServer struct {
	addr    string
	options map[string][]string
	mu      sync.Mutex
	tables  map[string]cqlTable
	seen    []string // statements
	asks    string   // for this password of anybody; "" = lets everybody in
	serving sync.WaitGroup
	conns   []net.Conn
}

// cqlTable is columns with their types, and rows with their values in column order.
type cqlTable struct {
	columns []cqlColumn
	rows    [][]any
}

type cqlColumn struct {
	name string
	kind uint16
}

const (
	bigintKind  = 0x02
	blobKind    = 0x03
	intKind     = 0x09
	varcharKind = 0x0D
	uuidKind    = 0x0C
	inetKind    = 0x10
	mapKind     = 0x21
	setKind     = 0x22
)

func newCQLServer(t testing.TB, options map[string][]string, tables map[string]cqlTable) *cqlServer {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &cqlServer{addr: listener.Addr().String(), options: options, tables: tables}
	s.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			s.serving.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		s.mu.Lock()
		for _, conn := range s.conns {
			_ = conn.Close()
		}
		s.mu.Unlock()
		s.serving.Wait()
	})
	return s
}

// set replaces a table.
func (s *cqlServer) set(name string, table cqlTable) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables[name] = table
}

// statements are those asked so far.
func (s *cqlServer) statements() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func (s *cqlServer) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var header [9]byte
		if _, err := io.ReadFull(conn, header[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(header[5:]))
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		opcode, answer := s.answer(header[0], header[4], body)
		reply := []byte{header[0] | cqlResponse, 0, header[2], header[3], opcode}
		reply = binary.BigEndian.AppendUint32(reply, uint32(len(answer)))
		if _, err := conn.Write(append(reply, answer...)); err != nil {
			return
		}
	}
}

func (s *cqlServer) answer(version, opcode byte, body []byte) (byte, []byte) {
	if version != cqlVersion {
		return opcodeError, cqlError(0x0A, "Invalid or unsupported protocol version (2); supported versions are (4/v4)")
	}
	switch opcode {
	case opcodeOptions:
		return opcodeSupported, multimap(s.options)
	case 0x01, 0x0B: // STARTUP, REGISTER
		if opcode == 0x01 && s.asks != "" {
			return 0x03, appendText(nil, "org.apache.cassandra.auth.PasswordAuthenticator")
		}
		return 0x02, nil
	case 0x0F: // AUTH_RESPONSE: name and password, each after a zero
		if !strings.HasSuffix(string(body), "\x00"+s.asks) {
			return opcodeError, cqlError(0x100, "Provided username and/or password are incorrect")
		}
		return 0x10, []byte{0xff, 0xff, 0xff, 0xff}
	case 0x09: // PREPARE
		return s.prepared(string(body[4:]))
	case 0x0A: // EXECUTE: its id is the statement
		n := binary.BigEndian.Uint16(body)
		return s.rows(string(body[2 : 2+n]))
	case 0x07: // QUERY
		n := binary.BigEndian.Uint32(body)
		return s.rows(string(body[4 : 4+n]))
	}
	return opcodeError, cqlError(0x0A, fmt.Sprintf("opcode %#x is not known here", opcode))
}

var selected = regexp.MustCompile(`(?is)^\s*SELECT (.+?) FROM (\S+)`)

// query finds table and columns of a statement.
func (s *cqlServer) query(statement string) (cqlTable, []int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, statement)
	match := selected.FindStringSubmatch(statement)
	if match == nil {
		return cqlTable{}, nil, fmt.Errorf("no statement for this server: %s", statement)
	}
	table, known := s.tables[match[2]]
	if !known {
		return cqlTable{}, nil, fmt.Errorf("unconfigured table %s", match[2])
	}
	var columns []int
	for i := range table.columns {
		if match[1] == "*" {
			columns = append(columns, i)
		}
	}
	if match[1] != "*" {
		for name := range strings.SplitSeq(match[1], ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			i := slices.IndexFunc(table.columns, func(c cqlColumn) bool { return c.name == name })
			if i < 0 {
				return cqlTable{}, nil, fmt.Errorf("undefined column name %s in table %s", name, match[2])
			}
			columns = append(columns, i)
		}
	}
	return table, columns, nil
}

func (s *cqlServer) prepared(statement string) (byte, []byte) {
	table, columns, err := s.query(statement)
	if err != nil {
		return opcodeError, cqlError(0x2200, err.Error())
	}
	out := binary.BigEndian.AppendUint32(nil, 4) // kind: prepared
	out = appendText(out, statement)
	binds := strings.Count(statement, "?")
	out = binary.BigEndian.AppendUint32(out, 0) // flags
	out = binary.BigEndian.AppendUint32(out, uint32(binds))
	out = binary.BigEndian.AppendUint32(out, 0) // partition key columns
	for i := range binds {
		out = appendText(appendText(appendText(out, "ks"), "t"), fmt.Sprint("bind", i))
		kind := uint16(varcharKind)
		if strings.Contains(statement, "token(") {
			kind = bigintKind
		}
		out = binary.BigEndian.AppendUint16(out, kind)
	}
	return 0x08, appendColumns(out, table, columns)
}

func (s *cqlServer) rows(statement string) (byte, []byte) {
	table, columns, err := s.query(statement)
	if err != nil {
		return opcodeError, cqlError(0x2200, err.Error())
	}
	out := appendColumns(binary.BigEndian.AppendUint32(nil, 2), table, columns) // kind: rows
	out = binary.BigEndian.AppendUint32(out, uint32(len(table.rows)))
	for _, row := range table.rows {
		for _, c := range columns {
			value, err := encode(row[c])
			if err != nil {
				return opcodeError, cqlError(0x0, err.Error())
			}
			out = appendBytes(out, value)
		}
	}
	return 0x08, out
}

func appendColumns(out []byte, table cqlTable, columns []int) []byte {
	out = binary.BigEndian.AppendUint32(out, 0) // flags
	out = binary.BigEndian.AppendUint32(out, uint32(len(columns)))
	for _, c := range columns {
		out = appendText(appendText(appendText(out, "ks"), "t"), table.columns[c].name)
		kind := table.columns[c].kind
		out = binary.BigEndian.AppendUint16(out, kind)
		if kind == setKind || kind == mapKind {
			out = binary.BigEndian.AppendUint16(out, varcharKind)
		}
		if kind == mapKind {
			out = binary.BigEndian.AppendUint16(out, varcharKind)
		}
	}
	return out
}

func encode(value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case string:
		return []byte(v), nil
	case []byte:
		return v, nil
	case int:
		return binary.BigEndian.AppendUint32(nil, uint32(v)), nil
	case int64:
		return binary.BigEndian.AppendUint64(nil, uint64(v)), nil
	case gocql.UUID:
		return v[:], nil
	case net.IP:
		return v.To4(), nil
	case []string:
		out := binary.BigEndian.AppendUint32(nil, uint32(len(v)))
		for _, text := range v {
			out = appendBytes(out, []byte(text))
		}
		return out, nil
	case map[string]string:
		out := binary.BigEndian.AppendUint32(nil, uint32(len(v)))
		for key, text := range v {
			out = appendBytes(appendBytes(out, []byte(key)), []byte(text))
		}
		return out, nil
	}
	return nil, errors.New("no encoding for this type")
}

func appendText(out []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint16(out, uint16(len(text))), text...)
}

func appendBytes(out, value []byte) []byte {
	if value == nil {
		return binary.BigEndian.AppendUint32(out, 0xFFFFFFFF)
	}
	return append(binary.BigEndian.AppendUint32(out, uint32(len(value))), value...)
}

func multimap(options map[string][]string) []byte {
	out := binary.BigEndian.AppendUint16(nil, uint16(len(options)))
	for key, values := range options {
		out = binary.BigEndian.AppendUint16(appendText(out, key), uint16(len(values)))
		for _, value := range values {
			out = appendText(out, value)
		}
	}
	return out
}

func cqlError(code uint32, text string) []byte {
	return appendText(binary.BigEndian.AppendUint32(nil, code), text)
}

// told is what a server of the battery says of itself; zero fields take Cassandra's values.
type told struct {
	release, dataCenter, bootstrapped string
	schema                            gocql.UUID
	tokens                            []string
	address                           net.IP
	peers                             []net.IP
	peerTokens                        []string
}

var someSchema = gocql.UUID{1, 2, 3}

// systemTables are those that drivers and the lab read.
func systemTables(w told) map[string]cqlTable {
	if w.release == "" {
		w.release = "5.0.6"
	}
	if w.dataCenter == "" {
		w.dataCenter = "datacenter1"
	}
	if w.bootstrapped == "" {
		w.bootstrapped = "COMPLETED"
	}
	if w.schema == (gocql.UUID{}) {
		w.schema = someSchema
	}
	if w.address == nil {
		w.address = net.IPv4(127, 0, 0, 1)
	}
	if w.tokens == nil {
		w.tokens = []string{"-5", "7"}
	}
	local := cqlTable{
		columns: []cqlColumn{{"key", varcharKind}, {"host_id", uuidKind}, {"release_version", varcharKind},
			{"data_center", varcharKind}, {"rack", varcharKind}, {"schema_version", uuidKind}, {"bootstrapped", varcharKind},
			{"tokens", setKind}, {"broadcast_address", inetKind}, {"rpc_address", inetKind}, {"listen_address", inetKind},
			{"partitioner", varcharKind}, {"cluster_name", varcharKind}},
		rows: [][]any{{"local", gocql.UUID{9}, w.release, w.dataCenter, "rack1", w.schema, w.bootstrapped,
			w.tokens, w.address, w.address, w.address, "org.apache.cassandra.dht.Murmur3Partitioner", clusterName}},
	}
	peers := cqlTable{columns: []cqlColumn{{"peer", inetKind}, {"host_id", uuidKind}, {"data_center", varcharKind},
		{"rack", varcharKind}, {"schema_version", uuidKind}, {"release_version", varcharKind}, {"tokens", setKind},
		{"rpc_address", inetKind}}}
	for i, peer := range w.peers {
		tokens := w.peerTokens
		if tokens == nil {
			tokens = []string{"1"}
		}
		peers.rows = append(peers.rows, []any{peer, gocql.UUID{10, byte(i)}, w.dataCenter, "rack1", w.schema, w.release,
			tokens, peer})
	}
	return map[string]cqlTable{
		"system.local": local, "system.peers": peers,
		"system_schema.keyspaces": {columns: []cqlColumn{{"keyspace_name", varcharKind}, {"replication", mapKind}}},
	}
}

// cassandraOptions and scyllaSupported are what the two engines answer to OPTIONS.
var (
	cassandraOptions = map[string][]string{"CQL_VERSION": {"3.4.7"}, "COMPRESSION": {"snappy", "lz4"},
		"PROTOCOL_VERSIONS": {"3/v3", "4/v4", "5/v5"}}
	scyllaSupported = map[string][]string{"CQL_VERSION": {"3.3.1"}, "COMPRESSION": {"lz4", "snappy"},
		"SCYLLA_SHARD": {"0"}, "SCYLLA_NR_SHARDS": {"1"}, "SCYLLA_SHARDING_ALGORITHM": {"biased-token-round-robin"},
		"SCYLLA_SHARDING_IGNORE_MSB": {"12"}, "SCYLLA_PARTITIONER": {"org.apache.cassandra.dht.Murmur3Partitioner"},
		"TABLETS_ROUTING_V1": {""}}
)

// scyllaTables are Cassandra's with ScyllaDB's constant release and its own table of versions.
func scyllaTables(w told, version, mode string) map[string]cqlTable {
	w.release = "3.0.8"
	tables := systemTables(w)
	tables["system.versions"] = cqlTable{
		columns: []cqlColumn{{"key", varcharKind}, {"version", varcharKind}, {"build_mode", varcharKind},
			{"build_id", varcharKind}},
		rows: [][]any{{"local", version, mode, "aabbcc"}},
	}
	return tables
}
