package shell

import "time"

// processorTime returns the time: that of the processor alone is not known here.
func processorTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
