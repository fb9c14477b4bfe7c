package plugins

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
)

// What the rogue does to a host, tests of hosts rely on: without it they would pass for nothing.
func TestTheRogueDoesWhatItsConfigurationSays(t *testing.T) {
	program := framework.RoguePlugin(t)
	execute := func(t *testing.T, p plugin) (*deployment.ExecuteStageResponse, error) {
		return p.ExecuteStage(t.Context(), &deployment.ExecuteStageRequest{Input: &deployment.ExecutePluginInput{
			Deployment: deploymentOf(), Stage: stageOf("ROGUE"), TargetDeploymentSource: sourceOf(t, "v1", nil),
		}})
	}
	fetch := func(t *testing.T, p plugin, within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := p.FetchDefinedStages(ctx, &deployment.FetchDefinedStagesRequest{}, grpc.WaitForReady(true))
		return err
	}

	t.Run("without a behaviour it is honest", func(t *testing.T) {
		response, err := execute(t, startHost(t).start(t, program, "rogue", nil))
		if err != nil || response.GetStatus() != model.StageStatus_STAGE_SUCCESS {
			t.Errorf("got %v, %v", response, err)
		}
	})
	t.Run("it exits with success", func(t *testing.T) {
		p := startHost(t).startUnready(t, program, "rogue", map[string]any{"behaviour": "exits"})
		p.await(t)
		if code := p.process.ProcessState.ExitCode(); code != 0 {
			t.Errorf("it exited with %d", code)
		}
	})
	t.Run("it answers no call", func(t *testing.T) {
		p := startHost(t).startUnready(t, program, "rogue", map[string]any{"behaviour": "silent"})
		if err := fetch(t, p, 2*time.Second); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
	})
	t.Run("it speaks another protocol", func(t *testing.T) {
		p := startHost(t).startUnready(t, program, "rogue", map[string]any{"behaviour": "other-protocol"})
		if err := fetch(t, p, 2*time.Second); err == nil {
			t.Error("it answers")
		}
	})
	t.Run("it answers with more than is taken", func(t *testing.T) {
		p := startHost(t).startUnready(t, program, "rogue", map[string]any{"behaviour": "huge"})
		if err := fetch(t, p, deadline); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("got %v", err)
		}
	})
	t.Run("it dies in a stage", func(t *testing.T) {
		p := startHost(t).start(t, program, "rogue", map[string]any{"behaviour": "dies-in-stage"})
		if _, err := execute(t, p); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v", err)
		}
		p.await(t)
	})
	t.Run("it hangs while a file is there", func(t *testing.T) {
		dir := t.TempDir()
		p := startHost(t).start(t, program, "rogue", map[string]any{"behaviour": "hangs", "while": filepath.Join(dir, "absent")})
		if err := fetch(t, p, deadline); err != nil {
			t.Errorf("without the file: %v", err)
		}
		p = startHost(t).startUnready(t, program, "rogue", map[string]any{"behaviour": "hangs", "while": dir})
		if err := fetch(t, p, 2*time.Second); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("with the file: %v", err)
		}
	})
	t.Run("it tells what it was not refused", func(t *testing.T) {
		response, err := execute(t, startHost(t).start(t, program, "rogue", map[string]any{"behaviour": "meddles"}))
		if err != nil || !strings.Contains(response.GetMessage(), `log of stage "another"`) {
			t.Errorf("got %v, %v from a host that refuses nothing", response, err)
		}
	})
}
