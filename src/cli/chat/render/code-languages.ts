/**
 * How code is divided into comments, strings, numbers and words, by language. Each pattern consumes what it has looked at, so
 * that the time grows with the length of the code only.
 */

/* oxlint-disable regexp/time, regexp/stack, regexp/built -- each finds an end from every start, and code has at most 20,000 characters */

export type Language = {
  /** Finds the next piece. Groups: 1 comment, 2 string, 3 number, 4 word. */
  readonly pieces: RegExp
  readonly keywords: ReadonlySet<string>
  readonly ignoresCase: boolean
  /** A string or a word before a colon is a key. */
  readonly hasKeys: boolean
}

const SLASHES = /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/
const HASH = /(?<![^\s;(])#[^\n]*/
const DASHES = /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/
const MARKUP = /<!--[\s\S]*?(?:-->|$)/
const NOTHING = /(?!)/

const DOUBLE = /"(?:[^"\\\n]|\\[\s\S])*"?/
const SINGLE = /'(?:[^'\\\n]|\\[\s\S])*'?/
/** An apostrophe also begins a lifetime. */
const CHARACTER = /'(?:[^'\\\n]|\\[^\n'][^'\n]{0,10})'/
const BACKTICK = /`(?:[^`\\]|\\[\s\S])*`?/
const TRIPLE = /"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)/
/** The strings of shells continue in the next line. */
const SHELL = /"(?:[^"\\]|\\[\s\S])*"?|'[^']*'?/

const NUMBER = /\d[\w.]*/
const WORD = /[A-Za-z_$][\w$]*/
/** Apostrophes in the text between tags begin nothing. */
const ATTRIBUTE = /(?<==)(?:"[^"]*"?|'[^']*'?)/
const TAG = /<\/?[A-Za-z!][\w:.-]*|\/?>/
/** Characters that begin nothing else, or one that does not here. */
const REST = /[^\w$"'`/#<>-]+|[\s\S]/
const NAME = /[A-Za-z_$][\w$-]*/

type Parts = {
  readonly comments: RegExp
  readonly strings: readonly RegExp[]
  readonly words?: RegExp
  readonly keywords?: string
  readonly ignoresCase?: boolean
  readonly hasKeys?: boolean
}

function language({
  comments,
  strings,
  words = WORD,
  keywords = '',
  ignoresCase = false,
  hasKeys = false,
}: Parts): Language {
  const string = [NOTHING, ...strings].map(({ source }) => source).join('|')
  const source = `(${comments.source})|(${string})|(${NUMBER.source})|(${words.source})|${REST.source}`
  return {
    pieces: new RegExp(source, 'g'),
    keywords: new Set(keywords.split(/\s+/).filter(Boolean)),
    ignoresCase,
    hasKeys,
  }
}

const COMMON = 'if else for while do switch case default break continue return'
const CONSTANTS = 'true false null'
const CLASSES = 'class extends implements interface enum public private protected static abstract final new this super'
const ERRORS = 'try catch finally throw throws'

const C = `${COMMON} const struct union enum typedef sizeof static extern inline goto void int char short long float double
  unsigned signed bool true false NULL include define ifdef ifndef endif`

const script = language({
  comments: SLASHES,
  strings: [DOUBLE, SINGLE, BACKTICK],
  keywords: `${COMMON} ${CONSTANTS} ${CLASSES} ${ERRORS} const let var function async await yield import export from of in as
    typeof instanceof delete undefined void type readonly declare namespace satisfies keyof string number boolean unknown any never`,
})
const c = language({ comments: SLASHES, strings: [DOUBLE, SINGLE], keywords: C })
const shell = language({
  comments: HASH,
  strings: [SHELL],
  keywords: `if then elif else fi for in do done while until case esac function select return exit break continue local export
    readonly declare unset shift source set eval exec trap true false`,
})
const python = language({
  comments: HASH,
  strings: [TRIPLE, DOUBLE, SINGLE],
  keywords: `and as assert async await break class continue def del elif else except finally for from global if import in is lambda
    nonlocal not or pass raise return try while with yield match case True False None self`,
})
const ofClasses = (more: string): Language =>
  language({
    comments: SLASHES,
    strings: [TRIPLE, DOUBLE, SINGLE],
    keywords: `${COMMON} ${CONSTANTS} ${CLASSES} ${ERRORS} import package void int long float double boolean char byte short ${more}`,
  })
const markup = language({ comments: MARKUP, strings: [ATTRIBUTE], words: TAG })
const settings = language({
  comments: HASH,
  strings: [DOUBLE, SINGLE],
  words: NAME,
  keywords: 'true false null yes no on off',
  hasKeys: true,
})

/** The languages by the names that stand after a fence. */
const LANGUAGES: ReadonlyMap<string, Language> = new Map(
  (
    [
      ['js jsx mjs cjs javascript ts tsx mts cts typescript', script],
      ['c h', c],
      [
        'cpp c++ cc hpp cxx',
        language({
          comments: SLASHES,
          strings: [DOUBLE, SINGLE],
          keywords: `${C} ${CLASSES} ${ERRORS} using namespace template typename auto constexpr nullptr virtual override delete operator
            friend const_cast static_cast noexcept`,
        }),
      ],
      [
        'go golang',
        language({
          comments: SLASHES,
          strings: [DOUBLE, SINGLE, BACKTICK],
          keywords: `${COMMON} func package import type struct interface map chan go defer select range var const fallthrough goto
            true false nil string int int64 uint byte rune error bool float64 any`,
        }),
      ],
      [
        'rs rust',
        language({
          comments: SLASHES,
          strings: [DOUBLE, CHARACTER],
          keywords: `as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref
            return self Self static struct super trait type unsafe use where while true false bool char str u8 u16 u32 u64 usize
            i8 i16 i32 i64 isize f32 f64 String Vec Option Result Some None Ok Err`,
        }),
      ],
      ['java', ofClasses('record sealed permits var instanceof synchronized volatile transient native')],
      [
        'kt kotlin kts',
        ofClasses('fun val var when object data sealed override open companion is in by lateinit suspend'),
      ],
      [
        'cs csharp c#',
        ofClasses('using namespace string var record get set async await readonly override virtual sealed is out ref'),
      ],
      [
        'swift',
        ofClasses('func let var struct protocol extension guard where nil self Self init in is as import some any'),
      ],
      [
        'php',
        ofClasses('function echo fn use namespace array string as foreach elseif require include isset unset match'),
      ],
      ['py python py3', python],
      [
        'rb ruby',
        language({
          comments: HASH,
          strings: [DOUBLE, SINGLE],
          keywords: `def end class module if elsif else unless case when while until do begin rescue ensure raise return yield self nil
            true false and or not in then next break require attr_accessor attr_reader puts`,
        }),
      ],
      ['sh bash shell zsh console fish', shell],
      [
        'dockerfile docker make makefile mk',
        language({
          comments: HASH,
          strings: [DOUBLE, SINGLE],
          keywords: `FROM RUN CMD COPY ADD ENV ARG WORKDIR USER EXPOSE ENTRYPOINT VOLUME LABEL HEALTHCHECK AS
            ifeq ifneq ifdef ifndef else endif include define endef export`,
        }),
      ],
      [
        'sql',
        language({
          comments: DASHES,
          strings: [SINGLE, DOUBLE],
          ignoresCase: true,
          keywords: `select from where and or not in is null as on join left right inner outer full group by order having limit offset
            insert into values update set delete create table index view drop alter add primary key foreign references unique
            default distinct union all case when then else end exists between like with begin commit rollback returning`,
        }),
      ],
      ['json jsonc json5', language({ comments: SLASHES, strings: [DOUBLE], keywords: CONSTANTS, hasKeys: true })],
      ['yaml yml toml ini', settings],
      ['css scss less', language({ comments: SLASHES, strings: [DOUBLE, SINGLE], words: NAME, hasKeys: true })],
      ['html xml svg vue', markup],
      [
        'lua',
        language({
          comments: /--[^\n]*/,
          strings: [DOUBLE, SINGLE],
          keywords: `and break do else elseif end false for function goto if in local nil not or repeat return then true until while`,
        }),
      ],
    ] as const
  ).flatMap(([names, language]) => names.split(' ').map((name) => [name, language] as const)),
)

/** `info`: what stands after the fence. Undefined for a language that is not known. */
export function languageNamed(info: string): Language | 'diff' | undefined {
  const [name = ''] = /^[\w+#-]{1,20}/.exec(info.trim()) ?? []
  return name === 'diff' || name === 'patch' ? 'diff' : LANGUAGES.get(name.toLowerCase())
}
