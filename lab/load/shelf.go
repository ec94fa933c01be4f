package load

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// shelf is where full chunks of journals go: a temporary file without a name, so that an hour of
// load takes no more memory than a minute, and nothing of it is left. Where no file can be made or
// written, chunks stay in memory: no outcome is lost. The file is closed when nobody holds the
// shelf any more, since a result may still be read after the next job has begun.
type shelf struct {
	mu     sync.Mutex
	folder string   // "" = the system's for temporary files, or else the working folder
	file   *os.File // nil before the first chunk
	end    int64
	err    error // why chunks stay in memory
}

// piece is a chunk that was put away.
type piece struct {
	kept  []byte // nil: it is in the file
	at    int64
	bytes int
}

// put takes a chunk over, its memory too unless reusable says that it was copied into the file.
func (s *shelf) put(chunk []byte) (p piece, reusable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil && s.err == nil {
		s.file, s.err = nameless(s.folder)
	}
	if s.err == nil {
		_, s.err = s.file.WriteAt(chunk, s.end)
	}
	if s.err != nil {
		return piece{kept: chunk, bytes: len(chunk)}, false
	}
	p = piece{at: s.end, bytes: len(chunk)}
	s.end += int64(len(chunk))
	return p, true
}

// read returns the bytes of a piece.
func (s *shelf) read(p piece) ([]byte, error) {
	if p.kept != nil {
		return p.kept, nil
	}
	chunk := make([]byte, p.bytes)
	if _, err := s.file.ReadAt(chunk, p.at); err != nil {
		return nil, fmt.Errorf("read outcomes back from the temporary file: %d bytes at %d: %w", p.bytes, p.at, err)
	}
	return chunk, nil
}

// nameless makes a file that is gone when its last descriptor is.
func nameless(folder string) (*os.File, error) {
	file, err := os.CreateTemp(folder, "jaegerlab-outcomes-*")
	if err != nil && folder == "" {
		file, err = os.CreateTemp(".", "jaegerlab-outcomes-*") // an image of one program has no /tmp
	}
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
