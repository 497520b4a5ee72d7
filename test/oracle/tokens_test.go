package oracle

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	tiktoken_loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/inspan/inspan/llm"
)

// textsOf are texts for prompts, by kind. Those in natural languages are our own.
func textsOf(t *testing.T) map[string]string {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 3000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	type order struct {
		ID       int      `json:"id"`
		Customer string   `json:"customer_name"`
		Total    float64  `json:"total"`
		Paid     bool     `json:"is_paid"`
		Tags     []string `json:"tags"`
		At       string   `json:"created_at"`
	}
	var orders []order
	var csv strings.Builder
	csv.WriteString("id,name,email,city,amount,date\n")
	names, cities := []string{"Miller", "Okafor", "Tanaka", "Silva", "Novak"}, []string{"Berlin", "Lagos", "Osaka", "Porto", "Brno"}
	for i := range 60 {
		n := names[r.IntN(5)]
		day := fmt.Sprintf("2026-%02d-%02d", 1+r.IntN(12), 1+r.IntN(28))
		orders = append(orders, order{1000 + i, n, float64(r.IntN(100000)) / 100, r.IntN(2) == 0, []string{"new", "express"}, day + "T12:30:00Z"})
		fmt.Fprintf(&csv, "%d,%s,%s%d@example.com,%s,%d.%02d,%s\n", 1000+i, n, strings.ToLower(n), r.IntN(90), cities[r.IntN(5)], r.IntN(900), r.IntN(100), day)
	}
	compact, _ := json.Marshal(orders)
	indented, _ := json.MarshalIndent(orders, "", "  ")
	code, err := os.ReadFile("../../llm/llm.go")
	if err != nil {
		t.Fatal(err)
	}
	prose, err := os.ReadFile("../../docs/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	repeat := func(s string) string { return strings.Repeat(s, 12) }
	return map[string]string{
		"JSON": string(compact), "JSON, indented": string(indented), "CSV": csv.String(), "hex": hex.EncodeToString(noise[:1500]),
		"base64": base64.StdEncoding.EncodeToString(noise), "Go": string(code), "English": string(prose),
		"Chinese":  repeat("从新系统上线以后，部分订单会重复出现两次，请先检查队列的处理逻辑，然后修复这个问题并补充测试。数据库连接池的大小也需要根据服务器的内存重新配置。"),
		"Hindi":    repeat("नई प्रणाली शुरू होने के बाद से कुछ ऑर्डर दो बार आते हैं। कृपया पहले कतार की जाँच करें, फिर इस समस्या को ठीक करें और परीक्षण जोड़ें। सर्वर की मेमोरी के अनुसार डेटाबेस की सेटिंग भी बदलनी है। "),
		"Japanese": repeat("新しいシステムに移行してから、一部の注文が二回届くことがあります。まずキューの処理を確認し、問題を修正してテストを追加してください。サーバーのメモリに合わせて設定も変更します。"),
		"Korean":   repeat("새 시스템으로 옮긴 뒤부터 일부 주문이 두 번씩 들어옵니다. 먼저 대기열 처리 과정을 확인하고 문제를 고친 다음 테스트를 추가해 주세요. "),
		"Russian":  repeat("После перехода на новую систему некоторые заказы приходят дважды. Сначала проверьте обработку очереди, затем исправьте ошибку и добавьте тесты. "),
		"Arabic":   repeat("منذ الانتقال إلى النظام الجديد تصل بعض الطلبات مرتين. تحقق أولا من معالجة قائمة الانتظار ثم أصلح المشكلة وأضف الاختبارات. "),
		"German":   repeat("Seit dem Umzug auf das neue System kommen manche Bestellungen doppelt an. Prüfe zuerst die Verarbeitung der Warteschlange, behebe dann den Fehler und ergänze Tests. "),
	}
}

// TestEstimates checks that our estimate of the tokens of a text, before a vendor has counted any, is near a vendor's
// tokenizer.
func TestEstimates(t *testing.T) {
	tiktoken.SetBpeLoader(tiktoken_loader.NewOfflineLoader())
	codec, err := tiktoken.GetEncoding("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	for kind, text := range textsOf(t) {
		real := len(codec.EncodeOrdinary(text))
		ours := llm.Message{Parts: llm.Say(text)}.Tokens()
		off := 100 * (float64(ours)/float64(real) - 1)
		t.Logf("%-15s %6d bytes %6d runes %5d tokens, estimated %5d: %+.0f%%", kind, len(text), len([]rune(text)), real, ours, off)
		if math.Abs(off) > 15 {
			t.Errorf("%s: %+.0f%%", kind, off)
		}
	}
}
