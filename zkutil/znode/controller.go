package znode

import (
	"bytes"
	"math"
	"strconv"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
)

// Controller is the value of ControllerPath: which broker holds the role.
type Controller struct {
	BrokerID    cluster.BrokerID
	TimestampMs int64
	// KRaftEpoch is -1 unless a KRaft quorum has taken over during a migration.
	KRaftEpoch int32
	Unknown    Fields
}

// NewController is the value that a broker writes when it stands for election.
func NewController(id cluster.BrokerID, timestampMs int64) Controller {
	return Controller{BrokerID: id, TimestampMs: timestampMs, KRaftEpoch: -1}
}

// DecodeController reads versions 1 and 2, and the bare broker id that 0.8.0 wrote.
func DecodeController(data []byte) (Controller, error) {
	if id, err := strconv.ParseInt(string(bytes.TrimSpace(data)), 10, 32); err == nil && id >= 0 {
		return NewController(cluster.BrokerID(id), 0), nil
	}
	d := newDecoder(ControllerPath, data)
	d.int32("version", 1)
	c := Controller{
		BrokerID:    cluster.BrokerID(d.int32("brokerid", math.MinInt32)),
		TimestampMs: d.decimal("timestamp", false, math.MinInt64),
		KRaftEpoch:  d.optionalInt32("kraftControllerEpoch", -1, -1),
	}
	c.Unknown = d.unknown()
	return c, d.err
}

// Encode writes version 2.
func (c Controller) Encode() []byte {
	e := newEncoder(96)
	e.int("version", 2)
	e.int("brokerid", int64(c.BrokerID))
	e.decimal("timestamp", c.TimestampMs)
	e.int("kraftControllerEpoch", int64(c.KRaftEpoch))
	return e.end(c.Unknown)
}

// DecodeControllerEpoch reads the bare decimal of ControllerEpochPath.
func DecodeControllerEpoch(data []byte) (cluster.ControllerEpoch, error) {
	v, err := strconv.ParseInt(string(data), 10, 32)
	if err != nil || v < 0 {
		return 0, &DecodeError{Path: ControllerEpochPath, Reason: excerpt(data) + " is not a controller epoch"}
	}
	return cluster.ControllerEpoch(v), nil
}

// EncodeControllerEpoch writes the bare decimal.
func EncodeControllerEpoch(e cluster.ControllerEpoch) []byte {
	return strconv.AppendInt(nil, int64(e), 10)
}

// Fenced wraps ops into the multi that every controller write is: the check that ControllerEpochPath still
// has the version the controller saw when it was elected, then ops. In the response, Results[0] belongs to
// the check: ErrBadVersion there means that another controller has been elected.
func Fenced(epochVersion cluster.ZKVersion, ops ...zkop.Request) zkop.Request {
	all := make([]zkop.Request, 0, len(ops)+1)
	all = append(all, zkop.Request{Kind: zkop.Check, Path: ControllerEpochPath, Version: int32(epochVersion)})
	return zkop.Request{Kind: zkop.Multi, Ops: append(all, ops...)}
}

// ElectController is the multi by which a broker takes the role: create ControllerPath (ephemeral) and move
// ControllerEpochPath from the version it was read at to the next epoch.
func ElectController(c Controller, next cluster.ControllerEpoch, epochVersion cluster.ZKVersion) zkop.Request {
	return zkop.Request{Kind: zkop.Multi, Ops: []zkop.Request{
		{Kind: zkop.Create, Path: ControllerPath, Data: c.Encode(), Mode: zkop.Ephemeral},
		{Kind: zkop.Set, Path: ControllerEpochPath, Data: EncodeControllerEpoch(next), Version: int32(epochVersion)},
	}}
}

// RegisterBroker is the multi by which a broker registers: create (ephemeral) and set of the same value, so
// that the set's answer brings the Stat whose Czxid is the broker epoch.
func RegisterBroker(r Registration) zkop.Request {
	path, data := BrokerPath(r.ID), r.Encode()
	return zkop.Request{Kind: zkop.Multi, Ops: []zkop.Request{
		{Kind: zkop.Create, Path: path, Data: data, Mode: zkop.Ephemeral},
		{Kind: zkop.Set, Path: path, Data: data, Version: 0},
	}}
}
