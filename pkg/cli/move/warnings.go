package move

import (
	"context"
	"sync"
)

// warnings keeps what the server says beside its answers.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// codeMisc is the only code of warnings that API servers use.
const codeMisc = 299

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code != codeMisc || text == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// take returns what was said since the last time.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.texts
	w.texts = nil
	return out
}
