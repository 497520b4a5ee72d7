package acp

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Ids of the options of a session.
const (
	optionMode     = "mode"
	optionModel    = "model"
	optionEffort   = "effort"
	optionPatience = "patience"
)

// modes returns the modes, and the one that applies from the next run on.
func (st *session) modes() *wire.SessionModeState {
	out := &wire.SessionModeState{CurrentModeId: wire.SessionModeId(st.mode())}
	for _, m := range tool.Modes() {
		name, doc := shownMode(m)
		out.AvailableModes = append(out.AvailableModes, wire.SessionMode{Id: wire.SessionModeId(m), Name: name, Description: &doc})
	}
	return out
}

// shownMode returns how an editor shows a mode.
func shownMode(m tool.Mode) (name, doc string) {
	return strings.ToUpper(string(m[:1])) + string(m[1:]), m.Doc()
}

// mode returns the present or coming mode.
func (st *session) mode() tool.Mode {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, b := range slices.Backward(st.held) {
		if s, ok := b.(event.Switched); ok && s.Mode != "" {
			return s.Mode
		}
	}
	return st.session.Status().Mode
}

// configOptions returns the person's choices, with the values from the next run on.
func (st *session) configOptions() []wire.SessionConfigOption {
	mode, category := st.mode(), wire.SessionConfigOptionCategoryMode
	var modes wire.SessionConfigSelectOptionsUngrouped
	for _, m := range tool.Modes() {
		name, doc := shownMode(m)
		modes = append(modes, wire.SessionConfigSelectOption{Value: wire.SessionConfigValueId(m), Name: name, Description: &doc})
	}
	st.mu.Lock()
	model, effort, patient := cmp.Or(st.model, st.session.Status().Route), st.effort, st.patient
	st.mu.Unlock()
	var models, efforts wire.SessionConfigSelectOptionsUngrouped
	for _, name := range st.agent.models(model) {
		models = append(models, wire.SessionConfigSelectOption{Value: wire.SessionConfigValueId(name), Name: name})
	}
	for _, e := range append([]string{""}, llm.Efforts()...) {
		efforts = append(efforts, wire.SessionConfigSelectOption{
			Value: wire.SessionConfigValueId(cmp.Or(e, "default")),
			Name:  cmp.Or(e, "as the model does by itself"),
		})
	}
	if effort != "" {
		efforts = efforts[1:] // the vendor's default can't be restored
	}
	list := []wire.SessionConfigOption{
		choose(optionMode, "Mode", "how much runs unasked", category, string(mode), modes),
		choose(optionModel, "Model", "who answers", wire.SessionConfigOptionCategoryModel, model, models),
		choose(optionEffort, "Effort", "how much the model thinks",
			wire.SessionConfigOptionCategoryThoughtLevel, cmp.Or(effort, "default"), efforts),
	}
	if _, more := st.agent.capabilities(); more.switches() {
		doc, category := "a model that is unavailable is tried again for 15 minutes, and for a day if a quota is used up",
			wire.SessionConfigOptionCategory("model_config")
		list = append(list, wire.SessionConfigOption{Boolean: &wire.SessionConfigOptionBoolean{
			Type: "boolean", Id: optionPatience, Name: "Keep trying", Description: &doc, Category: &category, CurrentValue: patient,
		}})
	}
	return list
}

func choose(id, name, doc string, category wire.SessionConfigOptionCategory, current string,
	from wire.SessionConfigSelectOptionsUngrouped,
) wire.SessionConfigOption {
	return wire.SessionConfigOption{Select: &wire.SessionConfigOptionSelect{
		Type: "select", Id: wire.SessionConfigId(id), Name: name, Description: &doc, Category: &category,
		CurrentValue: wire.SessionConfigValueId(current), Options: wire.SessionConfigSelectOptions{Ungrouped: &from},
	}}
}

// models returns the ready models, including the one in use.
func (a *agent) models(current string) []string {
	list := []string{current}
	add := func(name string) {
		if name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	add(a.App.Config.Model)
	for _, p := range a.App.Providers.List() {
		if p.Ready && p.Default != "" {
			add(p.Name + "/" + p.Default)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range a.found {
		add(name)
	}
	return list
}

// lookForModels asks local servers once for their models, and tells the client, which need not wait for that.
func (a *agent) lookForModels() {
	a.looking.Do(func() {
		if a.Host != nil {
			return
		}
		var names []string
		for _, f := range a.App.Providers.Discover(a.conn.Context()) {
			for _, m := range f.Models {
				names = append(names, m.Route())
			}
		}
		if len(names) == 0 {
			return
		}
		a.mu.Lock()
		a.found = names
		sessions := slices.Collect(maps.Values(a.sessions))
		a.mu.Unlock()
		for _, st := range sessions {
			st.tellOptions()
		}
	})
}

// tellOptions tells the client the present options.
func (st *session) tellOptions() {
	st.agent.update(st.id, wire.SessionUpdate{ConfigOptionUpdate: &wire.SessionConfigOptionUpdate{ConfigOptions: st.configOptions()}})
}

func (a *agent) setMode(p wire.SetSessionModeRequest) slowPart {
	st, err := a.session(p.SessionId)
	if err == nil {
		err = st.deferMode(tool.Mode(p.ModeId))
	}
	if err != nil {
		return failWith(err)
	}
	return func(context.Context) (any, error) {
		defer st.tellOptions()
		return wire.SetSessionModeResponse{}, st.storeChoices()
	}
}

func (st *session) deferMode(mode tool.Mode) error {
	if mode == "" {
		return invalid("mode: there is none without a name")
	}
	if err := mode.Check(); err != nil {
		return invalid("mode: %v", err)
	}
	st.mu.Lock()
	st.held = append(st.held, event.Switched{Mode: mode})
	t := st.turn
	st.mu.Unlock()
	if t != nil {
		t.reapply()
	}
	return nil
}

func (a *agent) setOption(p optionRequest) slowPart {
	st, err := a.session(wire.SessionId(p.SessionID))
	if err != nil {
		return failWith(err)
	}
	_, more := a.capabilities()
	id := p.ConfigID
	value, isText := p.Value.(string)
	on, isSwitch := p.Value.(bool)
	switch {
	case id == optionPatience && more.switches():
		if p.Type != "boolean" || !isSwitch {
			return failWith(invalid("the option %q has the type boolean: true or false", id))
		}
		st.mu.Lock()
		st.patient = on
		st.mu.Unlock()
	case !slices.Contains([]string{optionMode, optionEffort, optionModel}, id):
		err = invalid("there is no option %.60q", id)
	case !isText:
		err = invalid("the option %q is chosen from a list", id)
	case id == optionMode:
		err = st.deferMode(tool.Mode(value))
	case id == optionEffort:
		err = st.deferEffort(value)
	}
	if err != nil {
		return failWith(err)
	}
	return func(ctx context.Context) (any, error) {
		if id == optionModel {
			if err := st.deferModel(ctx, value); err != nil {
				return nil, err
			}
		}
		if err := st.storeChoices(); err != nil {
			return nil, err
		}
		if id == optionMode {
			st.agent.update(st.id, wire.SessionUpdate{CurrentModeUpdate: &wire.SessionCurrentModeUpdate{CurrentModeId: wire.SessionModeId(value)}})
		}
		return wire.SetSessionConfigOptionResponse{ConfigOptions: st.configOptions()}, nil
	}
}

func (st *session) deferEffort(effort string) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case effort == "default" && st.effort == "":
		return nil
	case !slices.Contains(llm.Efforts(), effort):
		return invalid("effort: %.60q is none of %s", effort, strings.Join(llm.Efforts(), ", "))
	}
	st.effort = effort
	st.held = append(st.held, event.Switched{Effort: effort})
	return nil
}

// deferModel switches the session to another model from its next run on.
func (st *session) deferModel(ctx context.Context, name string) error {
	if st.agent.Host == nil {
		if _, err := st.agent.App.Providers.Model(ctx, name, ""); err != nil {
			return unconfigured(err)
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.model = name; name == st.session.Status().Route {
		st.model = ""
	}
	return nil
}

// takeDeferred returns the changes kept for the next run.
func (st *session) takeDeferred() []event.Body {
	st.mu.Lock()
	defer st.mu.Unlock()
	held := st.held
	st.held = nil
	return held
}

// storeChoices stores the choices in the log at once if the session has begun and is idle; otherwise they apply from
// the next run on.
func (st *session) storeChoices() error {
	if !st.driving.TryLock() {
		return nil
	}
	defer st.driving.Unlock()
	status := st.current().Status()
	if status.Turns == 0 || status.Active || st.isGone() {
		return nil
	}
	if err := st.reopen(st.ctx); err != nil {
		return unconfigured(err)
	}
	held := st.takeDeferred()
	if len(held) == 0 {
		return nil
	}
	for e, err := range st.current().Run(st.ctx, held...) {
		if err != nil {
			return err
		}
		st.view.apply(e)
	}
	return nil
}

func (st *session) isGone() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.closed
}

// reopen opens the session again with the chosen model and patience, if they are others. The caller drives.
func (st *session) reopen(ctx context.Context) error {
	st.mu.Lock()
	name, old, was := st.model, st.session, st.options
	same := name == "" && st.patient == was.Limits.RetryLong
	if !same {
		st.model, st.options.Limits.RetryLong = "", st.patient
		st.options.Model, st.options.Mode = name, "" // if empty, those of the session
	}
	st.mu.Unlock()
	if same {
		return nil
	}
	if err := old.Close(); err != nil {
		return err
	}
	open := func(h *inspan.Host) (*inspan.Session, error) { return h.Open(ctx, st.id) }
	s, err := st.enter(open)
	if err != nil {
		st.mu.Lock()
		st.options, st.patient = was, was.Limits.RetryLong
		st.mu.Unlock()
		var again error
		if s, again = st.enter(open); again != nil {
			return errors.Join(err, again)
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.session = s
	return err
}
