package znode

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"kctl/zkutil/cluster"
)

// BrokerDataEpochsPath is ours: the data epoch of each broker (see Registration.DataEpoch) as the controllers have
// taken it into account. A new controller learns from it which broker crashed while nobody was in charge.
const BrokerDataEpochsPath = "/admin/broker_data_epochs"

// EncodeDataEpochs writes the epochs in ascending order of broker.
func EncodeDataEpochs(epochs map[cluster.BrokerID]cluster.BrokerEpoch) []byte {
	e := newEncoder(32 + 16*len(epochs))
	e.int("version", 1)
	list := newEncoder(16 * len(epochs))
	for _, id := range slices.Sorted(maps.Keys(epochs)) {
		list.int(strconv.Itoa(int(id)), int64(epochs[id]))
	}
	e.raw("epochs", list.end(nil))
	return e.end(nil)
}

// DecodeDataEpochs reads what EncodeDataEpochs wrote.
func DecodeDataEpochs(data []byte) (map[cluster.BrokerID]cluster.BrokerEpoch, error) {
	d := newDecoder(BrokerDataEpochsPath, data)
	d.int32("version", 1)
	out := map[cluster.BrokerID]cluster.BrokerEpoch{}
	for _, f := range d.object("epochs", true) {
		id, err := ParseBrokerID(f.Name)
		if err != nil {
			d.fail("epochs", "key %s", err)
			break
		}
		out[id] = cluster.BrokerEpoch(d.parseInt("epochs", f.Raw, 0, math.MaxInt64))
	}
	return out, d.err
}
