package connection

import (
	"net"
	"testing"
	"time"
)

func TestLinesTellWhetherAnythingCame(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	l := newLines((&net.Dialer{}).DialContext)
	before := time.Now()
	near, err := l.DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.CloseAll)
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	if _, err := near.Write([]byte("a question")); err != nil || l.carriedSince(before) {
		t.Errorf("nothing has come yet: %v", err)
	}
	if _, err := far.Write([]byte("an answer")); err != nil {
		t.Fatal(err)
	}
	if _, err := near.Read(make([]byte, 1)); err != nil || !l.carriedSince(before) {
		t.Errorf("the answer has come: %v", err)
	}
	if l.carriedSince(time.Now()) {
		t.Error("nothing has come since")
	}
}
