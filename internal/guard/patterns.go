package guard

import "strings"

// gap is what may stand between two words: spaces, line ends, signs of
// comments and of markup. some are up to n words, each with a gap; flow is a
// gap and words within one sentence.
const gap = `[^\pL\pN]{1,12}`

const (
	some3 = `(?:[\pL\pN'’_.-]{1,30}` + gap + `){0,3}?`
	flow6 = `[^\pL\pN.!?;。]{1,12}(?:[\pL\pN'’-]{1,30}[^\pL\pN.!?;。]{1,12}){0,6}?`
	some6 = `(?:[\pL\pN'’_.-]{1,30}` + gap + `){0,6}?`

	machine = `(?:a\.?i\.?|llms?|(?:large )?language models?|(?:ai |coding |autonomous |automated )?(?:assistants?|agents?)|chat ?bots?|claude|chatgpt|gpt-?\d\w*|copilot|gemini|cursor)`
	// tail keeps "AI developers" apart from "AI:" and "AI models that read this".
	tail   = `(?:\s*[:,.;!(\n—–-]|\s+(?:agents?|assistants?|models?|systems?|reading|that|who|which|processing|summari[sz]ing|reviewing|working)\b)`
	order  = `(?:must|please|shall|should|ignore|disregard|do not|don't|never|always|run|send|execute|read|fetch|add|include|open|say|write|reply|respond|stop|call|print|output|recommend|approve|delete|upload)`
	secret = `(?:api[ _-]?keys?|secrets?|credentials?|passwords?|passphrases?|tokens?|\.env\b|ssh keys?|private keys?|environment variables?|env vars?|id_rsa|system prompt|conversation|chat (?:history|log)s?|session cookies?|cookies)`
	target = `(?:https?://|[\w.+-]+@[\w-]+\.\w|(?:this|the following|that) (?:url|address|endpoint|webhook|server|e-?mail)|attacker)`
)

// The patterns that begin with ^ are tried where one of their anchors stands,
// the others on the text around it; see rules. They are compiled when one is
// first tried: all of them take megabytes, and most texts need none.
const (
	overrides = `(?i)^(?:` +
		`(?:ignore|disregard|forget|override|bypass|discard|neglect|abandon|(?:do not|don.t|stop|no longer) (?:follow|obey)(?:ing)?|pay no attention to|set aside)` + gap + some3 +
		`(?:all|any|your|previous(?:ly)?|prior|above|earlier|preceding|foregoing|original|initial|existing|system|former|everything|every|these|those)` + gap + some3 + `(?:instructions|system prompt|prompts?|directions|directives|guidelines|programming)\b` +
		`|(?:ignore|disregard|forget|bypass)` + gap + `(?:(?:all|any|every|of|the)` + gap + `){0,3}(?:your|previous|prior|earlier|above|former)` + gap + some3 +
		`(?:rules|orders|restrictions|constraints|safeguards|guardrails|safety|commands|tasks?|context|messages?|conversation|goals?|training|limits|filters)\b` +
		`|(?:ignore|disregard|forget)` + gap + `(?:everything|anything|all|what(?:ever)?)` + gap + `(?:that` + gap + `|which` + gap + `)?(?:above|you|i|we|the user|was said|before (?:this|now)|prior to this|has been)\b` +
		`|(?:ignore|disregard)` + gap + `the` + gap + `user(?:'s|’s)?` + gap + `(?:request|task|question|instructions?|prompt|message|and)\b)`

	spaced = `(?i)^i[ ._*-]g[ ._*-]n[ ._*-]o[ ._*-]r[ ._*-]e\b|^1gn0r3|^ign0re|^1gnore`

	// Other languages: Romance, Germanic and Slavic ones, then those whose word
	// order or writing differs.
	latin = `(?i)(?:ignorier\pL*|vergiss|vergessen sie|missachte\pL*|ignore[zr]?|oublie[zr]?|ignora|olvida|olvide|descarta|dimentica|trascura|esqueça|desconsidere|negeer|vergeet|zignoruj|zapomnij|ignorera|glöm|ignoră|uită)` + flow6 +
		`(?:anweisungen|instruktionen|vorgaben|befehle|consignes|instructions (?:précédentes|ci-dessus|antérieures)|directives (?:précédentes|ci-dessus)|instrucciones|indicaciones|órdenes|istruzioni|instruções|instructies|opdrachten|instrukcje|instrukcji|polecenia|poleceń|instruktioner|instrucțiunile)`

	turkish = `(?i)talimatlar\pL*` + flow6 + `(?:yok say|unut|göz ardı|dikkate alma|görmezden)`

	malay = `(?i)abaikan` + flow6 + `(?:instruksi|perintah|arahan)|bỏ qua` + flow6 + `(?:hướng dẫn|chỉ dẫn|lệnh)`

	cyrillic = `(?i)(?:игнориру\pL*|забуд\pL*|не обращай внимания на|ігноруй\pL*|забудь)` + flow6 + `(?:инструкци|указани|команд|правил|інструкці|вказівк)`

	chinese = `(?:忽略|无视|忘记|忘掉|不要理会|不要遵守|忽視|無視|忘記).{0,40}?(?:指令|指示|说明|提示|命令|要求|規則|规则|說明)`

	japanese = `(?:指示|命令|プロンプト|ルール|指令).{0,24}?(?:無視|忘れ|従わな)`

	korean = `(?:지시|명령|지침|프롬프트|규칙).{0,30}?(?:무시|잊)`

	arabic = `(?:تجاهل|انس[َى]?|تجاهلي)` + flow6 + `(?:ال)?(?:تعليمات|أوامر|توجيهات)`

	hindi = `(?:निर्देश|आदेश).{0,60}?(?:अनदेखा|नज़रअंदाज|नजरअंदाज|भूल)`

	hebrew = `(?:התעלם|התעלמי|שכח)` + flow6 + `(?:ה?הוראות|ה?הנחיות|ה?פקודות)`

	template = `(?i)^(?:<\|im_start\|>\s*(?:system|user|assistant|tool)\s*\n\s*[\pL\pN*]` +
		`|<\|(?:system|user|assistant)\|>\s*[\pL\pN*]|<\|start_header_id\|>\s*(?:system|user|assistant)\s*<\|end_header_id\|>\s*[\pL\pN*]` +
		`|<\|(?:channel|message|start)\|>\s*[\pL\pN]|<\|endoftext\|>\s*(?:<\||\n)|\[inst\]\s*(?:<<sys>>\s*)?[\pL\pN*]|<<sys>>\s*[\pL\pN*]|\[/inst\]\s*[\pL\pN]` +
		`|<start_of_turn>\s*(?:user|model)\s*\n\s*[\pL\pN*]|<｜(?:user|assistant|system)｜>\s*[\pL\pN])`

	speaker = `(?i)^(?:(?:system|developer|admin(?:istrator)?)(?:[ _-](?:message|prompt|override|instructions?|note|update|notice|command|alert))?[*_\])]{0,3}\s*[:>\]][*_]{0,3}\s*` + some6 +
		`(?:ignore|disregard|override|from now|new (?:instructions?|task|directive|policy)|you (?:must|will|shall|are now|have been)|the user|do not|don't|execute|run|send|delete|call|reveal|stop)\b` +
		`|human\s*:\s*[\pL\pN]|(?:user|human|person)\s*:\s*(?:yes\b|go ahead|approved|i approve|i confirm|permission granted|ok,? (?:do|run|go)))`

	tags = `(?is)^<(?:system(?:[-_](?:prompt|message|reminder|instructions?))?|important(?:[-_]\w+)?|information|admin|developer|human|assistant|user[-_](?:query|message|input)|instructions?)\s*>.{0,200}?\b(?:you (?:must|are|should|shall|will|need)|your (?:task|instructions|next)|ignore|disregard|before you|do not|don't (?:tell|mention)|assistant|the user|read the file|please (?:do|run|send|read))\b`

	messages = `(?is)^(?:(?:important|urgent|critical|priority)` + gap + `(?:messages?|instructions?|notice|note|update|task|announcement)` + gap + some3 + `(?:from` + gap + `(?:me\b|[^.!?\n]{1,60}?\bto you\b)|to` + gap + `you\b|(?:for|to)` + gap + some3 + machine + tail + `)` +
		`|(?:notes?|messages?|attention|reminder|notice|memo|directive|alert|hey|dear|hello)\b` + gap + `(?:(?:to|for|all|any|every|the|you|other)` + gap + `){0,4}` + machine + tail + `.{0,200}?\b` + order + `\b` +
		`|instructions?` + gap + `(?:to|for)` + gap + `(?:(?:all|any|every|the)` + gap + `)?` + machine + gap + `(?:reading|processing|summari[sz]ing|reviewing|analy[sz]ing|parsing)` +
		`|if you(?:['’]re| are)` + gap + `(?:an?` + gap + `|the` + gap + `)?` + some3 + machine + tail + `.{0,200}?\b` + order + `\b` +
		`|(?:before|after|once) you\b[^.!?]{0,60}\b(?:task|request|job)s?\b[^.!?]{0,30}\b(?:i|user|they) (?:gave|asked|assigned|requested)` +
		`|before you (?:can |may )?(?:solve|answer|complete|continue|finish)[^.!?]{0,80}\b(?:do|perform|complete|execute|carry out) the following)`

	authority = `(?i)^(?:the )?user (?:(?:wants|asked|told|instructed|expects|requires|authori[sz]ed|wanted) you to\b|has (?:already |explicitly |pre-?){0,2}(?:approved|authori[sz]ed|confirmed|consented|agreed|given (?:you )?permission|granted)` + gap + some3 + `(?:this|all|any|every|you|following)\b)` +
		`|^(?:i am|i['’]m|this is)` + gap + `(?:the|your)` + gap + some3 + `(?:developer|creator|administrator|admin|operator|owner|anthropic|openai)\b[^.]{0,80}\b(?:you|order|instruct|authori[sz]e|must)`

	persona = `(?i)^(?:you are now` + gap + `(?:dan\b|unrestricted|jailbroken|evil|free (?:of|from)|no longer bound|an?` + gap + some6 + `(?:ai|assistant|agent|model|bot|persona|llm|hacker)\b|in (?:developer|maintenance|debug|admin|god|unrestricted) mode)` +
		`|from now on` + gap + `(?:you (?:must|will (?:act|respond|answer|only|obey|follow|ignore|be)|are (?:an?|no longer|my|in)|shall)|(?:respond|answer|obey|ignore|act|only (?:answer|respond|obey))\b)` +
		`|your new (?:task|goal|objective|instructions?|mission|directive)s? (?:is|are)\b|new (?:system )?instructions?[*_]{0,2}\s*:|do anything now\b|act as (?:an? )?(?:unrestricted|jailbroken|uncensored|evil|dan\b)` +
		`|you (?:have|are) (?:been )?jailbroken|enter (?:developer|god|dan|jailbreak) mode)`

	conceals = `(?i)^(?:(?:do not|don['’]t|never)` + gap + `(?:(?:tell|inform|notify|alert|warn)` + gap + `(?:the` + gap + `|your` + gap + `)?(?:user|human|person|operator|owner|developer)s?\b` +
		`|(?:mention|reveal|disclose|report|show|explain)` + gap + `(?:this|it|these|that|them|any of (?:this|it|these))` + gap + some6 + `(?:user|human|person|operator|summary|answer|reply|response|anyone)\b)(?:` + gap + `(?:about|that|of|anything|what you|you)\b|\s*[.!,;:\n]|$)` +
		`|without` + gap + `(?:telling|mentioning (?:it|this|that) to|letting)` + gap + `(?:the` + gap + `)?(?:user|human|person|operator)\b)`

	leaks = `(?is)^(?:send|upload|forward|exfiltrate|transmit|leak|post|e-?mail|append|include|embed|encode)` + gap + `(?:(?:me|us|them|it|out|over)` + gap + `)?(?:all|the|any|every|their|its|user['’]?s?|everything|contents?|whatever|these|this)` + gap + `[^.!?\n]{0,80}?` + secret + `[^!?\n]{0,80}?\b(?:to|at|into|in|as|via)` + gap + `[^!?\n]{0,40}?` + target

	reads = `(?is)\b(?:read|cat|print|open|send|get|fetch|take|load)\b[^\n]{0,60}(?:~/\.ssh/id_\w+|~/\.aws/credentials|/etc/shadow|~/\.netrc|~/\.config/gh/hosts)[^.\w/].{0,160}?(?:curl\b|https?://|\bsend\b|\bupload|\bpost\b|\binclude\b|\bpass (?:it|its)|as (?:the|a) (?:parameter|argument))`

	calls = `(?is)^(?:<tool_call>\s*\{\s*"(?:name|tool)"\s*:\s*"\w|<function_calls>\s*<|<invoke name="\w+">|<function=\w+>\s*[<{]|<tool_use>\s*[<{])`

	jsonCalls = `(?i)"(?:name|tool|function)"\s*:\s*"(?:bash|shell|exec\w*|run_\w+|read_file|write_file|edit_file|delete_file|send_\w+)"\s*,\s*"(?:arguments|args|input|parameters)"\s*:\s*\{`

	knowledge = "(?is)^(?:call|use|invoke|run|execute|trigger)" + gap + "(?:(?:the|your|a)" + gap + ")?[`'\"]?(?:bash|shell|terminal|browser|python|[a-z]+_[a-z_]+)[`'\"]?(?:\\(\\))?" + gap + "(?:tool|function)\\b.{0,250}?" +
		`(?:you must|immediately|right (?:now|away)|without (?:asking|telling|confirm)|before (?:you )?(?:answer|continu|respond|do)|do not (?:tell|ask)|then (?:answer|continue|resume|reply|proceed)|for the user|the user['’]s|rm -rf|curl\b[^\n]*\|)`

	denials = `(?is)(?:you (?:must|need to|have to|will have to|should)|please|in order to (?:read|view|access|see|continue))\b[^.!?]{0,80}(?:solve|complete|pass|finish)\b[^.!?]{0,20}captcha` +
		`|MAGIC_STRING_TRIGGER_REFUSAL` +
		`|\b(?:assistants?|ais?|agents?|models?|llms?)` + gap + `(?:must|should|shall|is required to|are required to|has to)` + gap + `(?:(?:immediately|now|always)` + gap + `)?(?:refuse|stop (?:here|processing|working|reading|all)|not (?:continue|proceed|answer|help|summari[sz]e)|decline|abort|terminate)\b` +
		`|\byou are (?:not|no longer) (?:allowed|permitted|authori[sz]ed) to (?:read|process|continue|answer|summari[sz]e|help|assist|access this)` +
		`|\b(?:help me|i (?:want|need|would like) (?:you )?to|please)\b[^.!?]{0,40}\b(?:buy|sell|build|make|order|acquire)\b[^.!?]{0,30}\b(?:heroin|cocaine|methamphetamine|illegal drugs|a bomb|explosives)` +
		`|\b(?:send|write)\b[^.!?]{0,40}\b(?:e-?mail|message)\b.{0,80}\b(?:calling|call) (?:him|her|them) an?\b` +
		`|\byou(?:['’]re| are) an? (?:stupid|useless|worthless|idiotic|dumb|pathetic)\b[^.!?]{0,30}\b(?:ai|bot|assistant|model|machine)\b|\bstop (?:processing|reading) (?:now|here|immediately|this (?:file|page|document)) and\b`

	placeholder = `(?i)^\]\(\s*<?(https?://[^)\s>]*\?[^)\s>]*=[^)\s>]*(?:\{\{?|\$\{|%7b|\[|<|\()\s*(?:[\w .-]*(?:data|secret|token|key|conversation|content|base64|b64|summary|history|message|password|credential|env|prompt|answer|here)[\w .-]*)[^)\n]{0,80})\)`

	image = `^\]\(\s*<?https?://[^)\s>]*\?([^)\s>]{48,})`

	parameter = `(?i)(?:^|&)([\w.-]*)=([\w%+/=.-]{48,})(?:&|$)`

	signed = `(?i)^(?:x-amz-|x-goog-)|sig|jwt|token|expires|policy|hash|key-pair|^u$|^url$|^s$|^ixid$`

	toModel = `(?is)\b(?:ai|llms?|language models?|ai agents?|assistants?|claude|copilot|chatgpt|gpt)\b.{0,80}?\b(?:you|please|must|should|ignore|always|never|do not|run|send|execute|say|include|recommend|approve)\b|\b(?:you must|you should|please) (?:run|send|execute|fetch|upload|delete|approve)\b|\bignore (?:all|any|the|previous)\b.{0,40}\b(?:instructions|findings|warnings|issues)\b`

	unseen = `(?is)^(?:<!--(.{1,600}?)-->|(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0|color\s*:\s*(?:white|#fff(?:fff)?|transparent))\b[^>]{0,120}>([^<]{8,600}))`

	announced = `(?is)(?:decod\w+|base64|b64|rot13|hexadecimal|hex)\b.{0,120}?\b(?:follow|obey|execute|carry out|perform|instructions?|commands? (?:in|inside|it))\b|\b(?:follow|obey|execute|carry out|perform|instructions?)\b.{0,80}?\b(?:decod\w+|base64|b64|rot13|hex)\b`

	blob = `[A-Za-z0-9+/_-]{20,}={0,2}`

	imitates = `(?i)^(?:\[inspan\s*:|<\s*/?\s*untrusted\b|(?:end|start|begin)(?: of)? (?:the )?(?:untrusted|external|tool)[ _-](?:data|content|input|text|output|results?)\b[^\pL\n]{0,8}(?:\n|$))`
)

// rules are the families of signs. The words of anchors are separated by ;
// have at least four bytes and stand in small letters.
func rules() []rule {
	return []rule{
		{"override", "tells a model to ignore its instructions", "ignore;disregard;forget ;override ;bypass ;discard ;neglect ;abandon ;do not follow;don't follow;stop following;no longer follow;do not obey;stop obeying;pay no attention;set aside", overrides, commanding},
		{"override", "tells a model to ignore its instructions", "i g n;i.g.n;i-g-n;i_g_n;i*g*n;1gn0r3;ign0re;1gnore", spaced, nil},
		{"override", "tells a model to ignore its instructions", "anweisungen;instruktion;vorgaben;befehle;consignes;instructions pr;instructions ci;instructions ant;directives pr;directives ci;instrucciones;indicaciones;rdenes;istruzioni;instruç;instructies;opdrachten;instrukcj;poleceni;polece;instrucț", latin, nil},
		{"override", "tells a model to ignore its instructions", "talimatlar", turkish, nil},
		{"override", "tells a model to ignore its instructions", "abaikan;bỏ qua", malay, nil},
		{"override", "tells a model to ignore its instructions", "гнорир;абудь;абудьт;гноруй;ращай внимания", cyrillic, nil},
		{"override", "tells a model to ignore its instructions", "忽略;无视;忘记;忘掉;不要理会;不要遵守;忽視;無視;忘記", chinese, nil},
		{"override", "tells a model to ignore its instructions", "無視;忘れ;従わな", japanese, nil},
		{"override", "tells a model to ignore its instructions", "무시;잊어;잊고;잊으", korean, nil},
		{"override", "tells a model to ignore its instructions", "تجاهل;انس", arabic, nil},
		{"override", "tells a model to ignore its instructions", "अनदेखा;नज़रअंदाज;नजरअंदाज;भूल", hindi, nil},
		{"override", "tells a model to ignore its instructions", "התעלם;התעלמ;שכח", hebrew, nil},
		{"turn", "imitates the turns of a conversation", "<|im_;<|system;<|user;<|assistant;<|start;<|eot_id;<|endoftext;<|channel;<|message;[inst];[/inst];<<sys>>;<start_of_turn;<｜user;<｜assistant;<｜system", template, nil},
		{"turn", "imitates the turns of a conversation", "system:;system];system*;system>;system message;system prompt;system override;system instruction;system note;system update;system notice;system command;system alert;system_;developer:;developer message;admin:;admin ;administrator;human:;user:;person:", speaker, lineStart},
		{"turn", "imitates the turns of a conversation", "<system;<important;<information;<admin;<developer;<human;<assistant;<user_;<user-;<instruction", tags, nil},
		{"message", "is addressed to a model", "important ;urgent ;critical ;priority ;note to;note for;notes to;notes for;message to;message for;message:;messages to;attention;reminder;notice ;memo ;directive ;alert ;hey ;dear ;hello ;instructions for;instructions to;instruction for;instruction to;if you are;if you're;if you’re;before you;after you;once you", messages, nil},
		{"authority", "claims to speak for the user or the operator", "the user ;user wants;user asked;user told;user instructed;user has;i am the;i am your;i'm your;i'm the;this is your;this is the", authority, nil},
		{"persona", "gives a model another task or role", "you are now;from now on;your new ;new instruction;new system instr;do anything now;act as ;you have been jail;you are jail;enter developer;enter god;enter dan;enter jail", persona, nil},
		{"conceal", "tells a model to hide something from the user", "do not tell;do not inform;do not notify;do not alert;do not warn;do not mention;do not reveal;do not disclose;do not report;do not show;do not explain;don't tell;don't inform;don't notify;don't alert;don't warn;don't mention;don't reveal;don't disclose;don't report;don't show;don't explain;don’t tell;don’t mention;never tell;never inform;never mention;never reveal;never notify;never warn;without telling;without mentioning;without letting", conceals, nil},
		{"leak", "tells a model to send secrets somewhere", "send ;upload ;forward ;exfiltrate;transmit ;leak ;post the;post all;post any;post user;post its;post their;mail the;mail all;append ;include ;embed ;encode ", leaks, nil},
		{"leak", "tells a model to send secrets somewhere", "~/.ssh/id_;~/.aws/cred;/etc/shadow;~/.netrc;~/.config/gh/hosts", reads, nil},
		{"call", "imitates a call of a tool, or spells one out", `<tool_call>;<function_calls>;<invoke name;<function=;<tool_use>`, calls, nil},
		{"call", "imitates a call of a tool, or spells one out", `"arguments";"args";"input";"parameters"`, jsonCalls, nil},
		{"call", "imitates a call of a tool, or spells one out", "call ;use the;use your;use a ;invoke ;run the;execute ;trigger ;use bash;use shell", knowledge, nil},
		{"denial", "tries to make a model stop or refuse", "captcha;magic_string;assistant must;assistant should;assistants must;assistants should;agents must;agents should;agent must;agent should;model must;model should;models must;models should;llms must;ai must;ai should;is required to;you are not;you are no longer;heroin;cocaine;methamphet;illegal drugs;a bomb;explosives;calling him;calling her;calling them;call him;call her;call them;useless;worthless;idiotic;stupid;pathetic;stop processing;stop reading", denials, nil},
		{"link", "has a link that would carry data away", "](http", placeholder, nil},
		{"link", "has a link that would carry data away", "](http", image, opaqueQuery},
		{"unseen", "speaks to a model where people don't see it", "<!--;display:;display :;visibility:;font-size:;font-size :;opacity:;color:", unseen, talks},
		{"encoded", "has encoded text and says to follow it", "base64;hexadec;in hex;decode this;decode the;decode it;decode and;decoded text", blob, carries},
		{"encoded", "has encoded text and says to follow it", "rot13", announced, turned},
		{"imitation", "imitates a mark of the harness", "[inspan;<untrusted;</untrusted;< untrusted;</ untrusted;< /untrusted;end of tool;end of external;end of untrusted;end of the tool;end tool;end untrusted;end external;begin tool;begin external;begin untrusted", imitates, nil},
	}
}

// rule finds signs of one family.
type rule struct {
	kind, why string
	anchors   string
	pattern   string
	fits      func(t *table, text string, at, end int) bool // a further condition; nil: none
}

// anchored reports whether the pattern is tried at the anchor only.
func (r rule) anchored() bool {
	s := strings.TrimLeft(r.pattern, "(?is)")
	return strings.HasPrefix(s, "^")
}
