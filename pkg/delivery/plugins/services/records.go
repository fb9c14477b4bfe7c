package services

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
)

// recordName is the name of what a plugin keeps of an object. That of a plugin may be as long as a name can be.
func recordName(of metav1.Object, plugin string) string {
	sum := sha256.Sum256([]byte(plugin))
	return string(of.GetUID()) + "-" + hex.EncodeToString(sum[:8])
}

// recordOf is an empty record of what a plugin keeps of a release.
func (s *service) recordOf(release *v1alpha1.Release) *v1alpha1.PluginRecord {
	return s.record(release, "Release", v1alpha1.PluginRecordSpec{Plugin: s.plugin, Application: release.Spec.Application, Release: release.Name})
}

func (s *service) record(of metav1.Object, kind string, spec v1alpha1.PluginRecordSpec) *v1alpha1.PluginRecord {
	owner := *metav1.NewControllerRef(of, v1alpha1.SchemeGroupVersion.WithKind(kind))
	owner.BlockOwnerDeletion = nil
	return &v1alpha1.PluginRecord{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.GetNamespace(), Name: recordName(of, s.plugin), OwnerReferences: []metav1.OwnerReference{owner},
			Labels: map[string]string{v1alpha1.LabelApplication: spec.Application},
		},
		Spec: spec,
	}
}

// read returns what is kept, the empty record if nothing is.
func (s *service) read(ctx context.Context, empty *v1alpha1.PluginRecord) (*v1alpha1.PluginRecord, error) {
	record, err := s.Client.DeliveryV1alpha1().PluginRecords(empty.Namespace).Get(ctx, empty.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return empty, nil
	case err != nil:
		return nil, failure(err)
	case record.Spec.Plugin != s.plugin:
		return nil, s.refused("record", empty.Name)
	}
	return record, nil
}

// keep changes what is kept. Whoever has lost the race looks again.
func (s *service) keep(ctx context.Context, empty *v1alpha1.PluginRecord, change func(*v1alpha1.PluginRecordSpec)) error {
	records := s.Client.DeliveryV1alpha1().PluginRecords(empty.Namespace)
	raced := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	err := retry.OnError(retry.DefaultBackoff, raced, func() error {
		before, err := s.read(ctx, empty)
		if err != nil {
			return err
		}
		record := before.DeepCopy()
		change(&record.Spec)
		if errs := validation.ValidatePluginRecord(record); len(errs) > 0 {
			return status.Error(codes.ResourceExhausted, delivery.Said(errs.ToAggregate().Error()))
		}
		if record.ResourceVersion == "" {
			_, err = records.Create(ctx, record, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
		} else {
			_, err = records.Update(ctx, record, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
		}
		return err
	})
	if _, said := status.FromError(err); said {
		return err
	}
	return failure(err)
}

// failure is what a plugin is told of an error of the API.
func failure(err error) error {
	code := codes.Unavailable
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err) {
		code = codes.FailedPrecondition
	}
	return status.Error(code, delivery.Said(err.Error()))
}

// GetStageMetadata returns what the plugin has kept of this attempt at the stage, or noted about it when the release was planned.
func (s *service) GetStageMetadata(ctx context.Context, request *pipedservice.GetStageMetadataRequest) (*pipedservice.GetStageMetadataResponse, error) {
	of, err := s.stageOf(request.GetDeploymentId(), request.GetStageId())
	if err == nil {
		err = required("key", request.GetKey())
	}
	if err != nil {
		return nil, err
	}
	record, err := s.read(ctx, s.recordOf(of.release))
	if err != nil {
		return nil, err
	}
	if i := of.in(record.Spec.Stages); i >= 0 && record.Spec.Stages[i].Attempt == of.attempt {
		if value, found := record.Spec.Stages[i].Metadata[request.GetKey()]; found {
			return &pipedservice.GetStageMetadataResponse{Value: value, Found: true}, nil
		}
	}
	if planned := of.planned.Planned; planned != nil {
		if value, found := planned.Metadata[request.GetKey()]; found {
			return &pipedservice.GetStageMetadataResponse{Value: value, Found: true}, nil
		}
	}
	return &pipedservice.GetStageMetadataResponse{}, nil
}

// in is the position of a stage among the records of stages, -1 if it is none of them.
func (of stage) in(stages []v1alpha1.StageRecord) int {
	return slices.IndexFunc(stages, func(r v1alpha1.StageRecord) bool { return r.ID == of.id })
}

// PutStageMetadata keeps a value of a stage.
func (s *service) PutStageMetadata(ctx context.Context, request *pipedservice.PutStageMetadataRequest) (*pipedservice.PutStageMetadataResponse, error) {
	err := s.putStage(ctx, request.GetDeploymentId(), request.GetStageId(), map[string]string{request.GetKey(): request.GetValue()})
	if err != nil {
		return nil, err
	}
	return &pipedservice.PutStageMetadataResponse{}, nil
}

// PutStageMetadataMulti keeps values of a stage.
func (s *service) PutStageMetadataMulti(ctx context.Context, request *pipedservice.PutStageMetadataMultiRequest) (*pipedservice.PutStageMetadataMultiResponse, error) {
	if err := s.putStage(ctx, request.GetDeploymentId(), request.GetStageId(), request.GetMetadata()); err != nil {
		return nil, err
	}
	return &pipedservice.PutStageMetadataMultiResponse{}, nil
}

// putStage keeps values of an attempt at a stage. Those of the one before are of no use any more.
func (s *service) putStage(ctx context.Context, deployment, id string, values map[string]string) error {
	of, err := s.stageOf(deployment, id)
	if err != nil {
		return err
	}
	return s.keep(ctx, s.recordOf(of.release), func(spec *v1alpha1.PluginRecordSpec) {
		i := of.in(spec.Stages)
		if i < 0 {
			i, spec.Stages = len(spec.Stages), append(spec.Stages, v1alpha1.StageRecord{ID: of.id})
		}
		record := &spec.Stages[i]
		if record.Attempt != of.attempt || record.Metadata == nil {
			record.Attempt, record.Metadata = of.attempt, map[string]string{}
		}
		maps.Copy(record.Metadata, values)
	})
}

// GetDeploymentPluginMetadata returns what the plugin has kept of the release.
func (s *service) GetDeploymentPluginMetadata(
	ctx context.Context, request *pipedservice.GetDeploymentPluginMetadataRequest,
) (*pipedservice.GetDeploymentPluginMetadataResponse, error) {
	if err := s.myself(request.GetPluginName()); err != nil {
		return nil, err
	}
	release, err := s.releaseOf(request.GetDeploymentId())
	if err == nil {
		err = required("key", request.GetKey())
	}
	if err != nil {
		return nil, err
	}
	record, err := s.read(ctx, s.recordOf(release))
	if err != nil {
		return nil, err
	}
	value, found := record.Spec.Metadata[request.GetKey()]
	return &pipedservice.GetDeploymentPluginMetadataResponse{Value: value, Found: found}, nil
}

// PutDeploymentPluginMetadata keeps a value of the release.
func (s *service) PutDeploymentPluginMetadata(
	ctx context.Context, request *pipedservice.PutDeploymentPluginMetadataRequest,
) (*pipedservice.PutDeploymentPluginMetadataResponse, error) {
	err := s.putRelease(ctx, request.GetDeploymentId(), request.GetPluginName(), map[string]string{request.GetKey(): request.GetValue()})
	if err != nil {
		return nil, err
	}
	return &pipedservice.PutDeploymentPluginMetadataResponse{}, nil
}

// PutDeploymentPluginMetadataMulti keeps values of the release.
func (s *service) PutDeploymentPluginMetadataMulti(
	ctx context.Context, request *pipedservice.PutDeploymentPluginMetadataMultiRequest,
) (*pipedservice.PutDeploymentPluginMetadataMultiResponse, error) {
	if err := s.putRelease(ctx, request.GetDeploymentId(), request.GetPluginName(), request.GetMetadata()); err != nil {
		return nil, err
	}
	return &pipedservice.PutDeploymentPluginMetadataMultiResponse{}, nil
}

func (s *service) putRelease(ctx context.Context, deployment, plugin string, values map[string]string) error {
	if err := s.myself(plugin); err != nil {
		return err
	}
	release, err := s.releaseOf(deployment)
	if err != nil {
		return err
	}
	return s.keep(ctx, s.recordOf(release), func(spec *v1alpha1.PluginRecordSpec) {
		if spec.Metadata == nil {
			spec.Metadata = map[string]string{}
		}
		maps.Copy(spec.Metadata, values)
	})
}

// GetDeploymentSharedMetadata finds nothing: what the host has to say of a release is in the release.
func (s *service) GetDeploymentSharedMetadata(
	_ context.Context, request *pipedservice.GetDeploymentSharedMetadataRequest,
) (*pipedservice.GetDeploymentSharedMetadataResponse, error) {
	if _, err := s.releaseOf(request.GetDeploymentId()); err != nil {
		return nil, err
	}
	return &pipedservice.GetDeploymentSharedMetadataResponse{}, required("key", request.GetKey())
}

// GetApplicationSharedObject returns what the plugin has kept of an application.
func (s *service) GetApplicationSharedObject(
	ctx context.Context, request *pipedservice.GetApplicationSharedObjectRequest,
) (*pipedservice.GetApplicationSharedObjectResponse, error) {
	empty, err := s.objects(request.GetApplicationId(), request.GetPluginName(), request.GetKey())
	if err != nil {
		return nil, err
	}
	record, err := s.read(ctx, empty)
	if err != nil {
		return nil, err
	}
	object, found := record.Spec.Objects[request.GetKey()]
	if !found {
		return nil, status.Error(codes.NotFound, "no such object is kept")
	}
	return &pipedservice.GetApplicationSharedObjectResponse{Object: object}, nil
}

// PutApplicationSharedObject keeps an object of an application.
func (s *service) PutApplicationSharedObject(
	ctx context.Context, request *pipedservice.PutApplicationSharedObjectRequest,
) (*pipedservice.PutApplicationSharedObjectResponse, error) {
	empty, err := s.objects(request.GetApplicationId(), request.GetPluginName(), request.GetKey())
	if err != nil {
		return nil, err
	}
	err = s.keep(ctx, empty, func(spec *v1alpha1.PluginRecordSpec) {
		if spec.Objects == nil {
			spec.Objects = map[string][]byte{}
		}
		spec.Objects[request.GetKey()] = slices.Clone(request.GetObject())
	})
	if err != nil {
		return nil, err
	}
	return &pipedservice.PutApplicationSharedObjectResponse{}, nil
}

// objects is an empty record of what the plugin keeps of an application.
func (s *service) objects(application, plugin, key string) (*v1alpha1.PluginRecord, error) {
	if err := s.myself(plugin); err != nil {
		return nil, err
	}
	app, err := s.applicationOf(application)
	if err != nil {
		return nil, err
	}
	if err := required("key", key); err != nil {
		return nil, err
	}
	return s.record(app, "Application", v1alpha1.PluginRecordSpec{Plugin: s.plugin, Application: app.Name}), nil
}
