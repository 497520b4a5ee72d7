package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/inspan/inspan/event"
)

// visit submits a task, follows it up to its question, answers that, and follows the rest over a new connection.
func visit(url string) error {
	resp, err := http.Post(url+"/sessions", "text/plain", strings.NewReader("bash: touch made\nsay: It is made."))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	id, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	session := url + "/sessions/" + string(id)
	seq, waiting, err := follow(session, "", "waiting")
	if err != nil {
		return err
	}
	var question event.Waiting
	if err := json.Unmarshal([]byte(waiting), &question); err != nil {
		return err
	}
	fmt.Println("--- the connection breaks, and a person allows the call")
	answer := fmt.Sprintf(`{"call":%q,"question":%s,"allow":true,"by":"the client"}`, question.Call, seq)
	done, err := http.Post(session+"/answers", "application/json", strings.NewReader(answer))
	if err != nil {
		return err
	}
	done.Body.Close()
	_, _, err = follow(session, seq, "stopped")
	return err
}

// follow prints the events after one, up to the first of a kind, and returns that.
func follow(session, after, until string) (id, data string, err error) {
	req, err := http.NewRequest(http.MethodGet, session+"/events", nil)
	if err != nil {
		return "", "", err
	}
	req.Header.Set("Last-Event-ID", after)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	kind := ""
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return "", "", fmt.Errorf("the stream ended: %w", err)
		}
		switch field, value, _ := strings.Cut(strings.TrimSpace(line), ": "); field {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			fmt.Println(id, kind)
			if kind == until {
				return id, value, nil
			}
		}
	}
}
