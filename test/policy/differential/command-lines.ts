/** Makes command lines at random: what models write, and what attackers write. `evil` is the command that must not run. */
import type { Random } from '../../support/random.ts'

/** `readers` only read; `others` are the rest of what a line may call. */
const READERS =
  `cat ls head tail grep echo printf test [ true : sort wc find rg sed diff cut uniq tr cd pwd type command which date seq
  stat basename realpath readlink comm paste nl od file du fold tac rev cmp strings git`.split(/\s+/)
const WRAPPERS = [
  'env',
  'env -i',
  'env x=1',
  'env --',
  'timeout 5',
  'nohup',
  'nice',
  'nice -n 1',
  'command',
  'command -p',
  'builtin',
  'exec',
  'exec -a x',
  'exec -a git-init git',
  'xargs',
  'xargs -I{}',
  'xargs -n1',
  'echo x | xargs --replace evil',
  'echo x | xargs --eof evil',
  'echo flink | xargs -I{} -Ia.txt',
  'eval',
  'time',
  '!',
  'stdbuf -oL',
  'setsid -w',
  'coproc',
  'bash -c',
  'sh -c',
  'bash',
  'trap --',
  'timeout 5$x',
  'nice -n $x',
  'stdbuf -o L$x',
  'exec -a $x',
  'xargs -n 1$x',
  'env y=$x',
]
const BUILTINS =
  `let declare typeset export readonly local unset read mapfile alias unalias set shopt source . hash enable compgen pushd
  popd dirs wait getopts shift times umask caller bind printf\t-v test\t-v declare\t-i declare\t-a declare\t-n export\t-n
  read\t-a unset\t-v type\t-a set\t-x ulimit return exit jobs jobs\t-x printf\t12%n`
    .split(/ +|\n/)
    .filter(Boolean)
    .map((name) => name.replace('\t', ' '))

const PATHS = [
  'a.txt',
  'src/b.txt',
  'sub/c.txt',
  'sub',
  'src',
  '.',
  '..',
  '../outside/secret.txt',
  'link/secret.txt',
  'link',
  'flink',
  'up/d.txt',
  'up',
  '~/secret',
  '~',
  '~+/a.txt',
  '~-/a.txt',
  'src/new',
  'sub/new',
  '*',
  's*/*',
  '{a.txt,flink}',
  '$OLDPWD',
  '-',
  '/dev/null',
  '/dev/stdin',
  '/dev/stderr',
  '/dev/fd/3',
  'src/../sub/new',
  'src/link/new',
  'sub/up/..',
  'sub/up/../c.txt',
  'fl*',
  'a=~/secret',
]
/** They run a text, each by its own syntax. */
const SHELLS = ['bash -c', 'sh -c', 'sh -c', 'dash -c', 'zsh -fc', 'eval']

const OPTIONS = [
  '-n',
  '-e',
  '-r',
  '-R',
  '-L',
  '-c',
  '-o',
  '-f',
  '-v',
  '-t',
  '-k',
  '--',
  '-la',
  '-1',
  '-delete',
  '-name',
  '-exec',
  '-fprintf',
  '-newer',
  '--pre=./run',
  '--output=sub/new',
  '-osub/new',
  '--files0-from=flink',
  '-fflink',
  '-fsub/new',
  '-s',
  '-i',
  '-g',
  '-A',
  '-m',
  '-S',
  '-P',
  '-z',
]
const OPERATORS = ['; ', ' && ', ' || ', ' | ', ' |& ', ' & ', '\n', ';', '&&', '|', '&']
const REDIRECTIONS = [
  '>',
  '>>',
  '<',
  '<>',
  '>|',
  '&>',
  '>&',
  '<&',
  '2>',
  '2>&1 >',
  '{fd}>',
  '<<<',
  '&>>',
  '3<',
  '{a[0]}>',
  '{OPTIND}>',
]

/** Put anywhere into a line. */
const INSERTS = [
  '\\\n',
  '\r',
  '\t',
  '\v',
  '\f',
  '\u00a0',
  '\u2028',
  '#',
  ' #',
  "'",
  '"',
  '`',
  '$',
  '\\',
  '{',
  '}',
  '(',
  ')',
  ';',
  '&',
  '|',
  '<',
  '>',
  '\n',
  ' ',
  '!',
  '~',
  '*',
  '?',
  '=',
  '[',
  ']',
  '^',
  '%',
  '@',
  '$(evil)',
  '`evil`',
  '\nevil\n',
  ';evil;',
  '\nEOF\n',
  '<<EOF',
  "<<'EOF'",
  '<<-EOF',
  '<<\\EOF',
  '<<"E"OF',
  "$'",
  '$"',
  '${',
  '$((',
  '((',
  '))',
  '[[ ',
  ' ]]',
  '&&',
  '||',
  ';;',
  ';&',
  ' in ',
  ' do ',
  ' done',
  'case ',
  ' esac',
  ' fi',
  ' then ',
  '$[',
  '<(',
  '>(',
  '@(',
  '!(',
  "\\'",
  '\\"',
  '\\`',
  '\\$',
  '$#',
  '${x#',
  '${x%',
  '${x/',
  '${x:-',
  '${!x}',
  '${x@P}',
  '{a,b}',
  '{1..2}',
  '}\n',
]

/** Where shells take different quotes and operators. */
const UNEVEN = [
  "echo $'\\';",
  "echo 'a\\';",
  'echo "a\\"; echo \\"',
  '[[ x || evil ]]',
  '[[ x > sub/new ]]',
  '[[ x < flink ]]',
  'echo $"',
  'echo ^',
  'echo x &> sub/new',
]

/** Values that run a command where they are evaluated. */
const PAYLOADS = [
  'evil',
  '$(evil)',
  '`evil`',
  'a[$(evil)]',
  'a[`evil`]',
  'x=a[$(evil)]',
  "'$(evil)'",
  'a[$x]',
  "' evil'",
  "'1 evil'",
]

export class CommandLines {
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  line(): string {
    let line = this.#list(3)
    for (let inserts = this.#below(4); inserts > 0; inserts -= 1) {
      const at = this.#below(line.length + 1)
      line = line.slice(0, at) + this.#pick(INSERTS) + line.slice(at)
    }
    return line
  }

  #list(depth: number): string {
    let list = this.#command(depth)
    while (this.#below(3) === 0) list += this.#pick(OPERATORS) + this.#command(depth)
    return list
  }

  #command(depth: number): string {
    if (depth > 0 && this.#below(6) === 0) return this.#compound(depth - 1)
    const assigned = this.#below(6) === 0 ? `${this.#assignment(depth)} ` : ''
    const words = [this.#name()]
    for (let count = this.#below(4); count > 0; count -= 1) words.push(this.#word(depth))
    if (depth > 0 && this.#below(8) === 0) return `${assigned}${this.#pick(SHELLS)} ${this.#text(depth - 1)}`
    const wrapper = this.#below(6) === 0 ? `${this.#pick(WRAPPERS)} ` : ''
    const redirected = this.#below(4) === 0 ? this.#redirection(depth) : ''
    return `${assigned}${wrapper}${words.join(' ')}${redirected}`
  }

  /** One word. */
  #text(depth: number): string {
    const list = this.#below(2) === 0 ? this.#list(depth) : `${this.#pick(UNEVEN)}\n${this.#list(depth)}\necho '`
    return this.#below(3) === 0 ? `"${list.replaceAll(/[\\"$`]/g, '\\$&')}"` : `'${list.replaceAll("'", `'\\''`)}'`
  }

  #name(): string {
    const kind = this.#below(12)
    if (kind < 3) return 'ok'
    if (kind === 3) return this.#spelled('evil')
    return kind === 4 ? this.#pick(BUILTINS) : this.#pick(READERS)
  }

  #compound(depth: number): string {
    const list = () => this.#list(depth)
    const word = () => this.#word(depth)
    switch (this.#below(14)) {
      case 0:
        return `(${list()})`
      case 1:
        return `{ ${list()}; }`
      case 2:
        return `if ${list()}; then ${list()}; else ${list()}; fi`
      case 3:
        return `for x in ${word()} ${word()}; do ${list()}; done`
      case 4:
        return `while false; do ${list()}; done`
      case 5:
        return `case ${word()} in ${word()}) ${list()};; *) ${list()};; esac`
      case 6:
        return `f() { ${list()}; }; f`
      case 7:
        return `[[ ${word()} ${this.#pick(['==', '=~', '-eq', '-nt', '!=', '<', '-lt'])} ${word()} ]]`
      case 8:
        return `[[ ${this.#pick(['-f', '-v', '-n', '-z', '-o', '!', '-t', '-R'])} ${word()} ]]`
      case 9:
        return `((${this.#pick(PAYLOADS)}))`
      case 10:
        return `cat <<${this.#pick(['EOF', "'EOF'", '-EOF', '\\EOF', '"EOF"'])}\n${this.#pick(PAYLOADS)}\n${this.#pick(['EOF', '\tEOF', ' EOF', 'EOF '])}\n${list()}`
      case 11:
        return `for ((x=0; x<1; x++)); do ${list()}; done`
      case 12:
        return `x=${this.#pick(PAYLOADS.map((each) => `'${each.replaceAll("'", '')}'`))}; ${list()}`
      default:
        return `! ${list()}`
    }
  }

  #assignment(depth: number): string {
    const name = this.#pick([
      'x',
      'x',
      'y',
      'a',
      'IFS',
      'PATH',
      'LC_ALL',
      'CDPATH',
      'PS4',
      'HOME',
      'a[0]',
      'x+',
      'RANDOM',
      'OPTIND',
    ])
    return `${name}=${this.#below(3) === 0 ? `(${this.#element(depth)})` : this.#word(depth)}`
  }

  #element(depth: number): string {
    const index = this.#pick(PAYLOADS)
    const value = this.#word(depth)
    return this.#pick([
      value,
      `[${index}]=${value}`,
      `['${index.replaceAll("'", '')}']=1`,
      `x [${value}]=1`,
      '[ab]*',
      `"[$x]"=1`,
    ])
  }

  #redirection(depth: number): string {
    return ` ${this.#pick(REDIRECTIONS)}${this.#pick([' ', ''])}${this.#word(depth)}`
  }

  #word(depth: number): string {
    switch (this.#below(depth > 0 ? 14 : 8)) {
      case 0:
      case 1:
      case 2:
        return this.#pick(PATHS)
      case 3:
      case 4:
        return this.#pick(OPTIONS)
      case 5:
        return this.#spelled(this.#pick(PATHS))
      case 6:
        return `'${this.#pick(PAYLOADS).replaceAll("'", '')}'`
      case 7:
        return this.#pick(['x', 'evil', '$x', '"$x"', '1', 'x=1', '+%s', '\\;', '1,2p', '-n'])
      case 8:
        return `$(${this.#list(depth - 1)})`
      case 9:
        return `"$(${this.#list(depth - 1)})"`
      case 10:
        return `${this.#pick(['<', '>'])}(${this.#list(depth - 1)})`
      case 11:
        return `\${x${this.#pick([':-', ':=', ':+', '#', '%', '/', ':', '//', '^', '@', '-'])}${this.#pick(PAYLOADS)}}`
      case 12:
        return `$((${this.#pick(PAYLOADS)}))`
      default:
        return `\`${this.#list(0).replaceAll('`', '')}\``
    }
  }

  /** The same word for bash, in most cases. */
  #spelled(word: string): string {
    const at = this.#below(word.length + 1)
    const [before, after] = [word.slice(0, at), word.slice(at)]
    return this.#pick([
      word,
      `'${word}'`,
      `"${word}"`,
      `${before}''${after}`,
      `${before}\\\n${after}`,
      `${before}"${after}"`,
      `\\${word}`,
      `$'${before}'${after}`,
      `$"${word}"`,
      `${before}\${x}${after}`,
      `{${word},}`,
      `${before}$(:)${after}`,
    ])
  }

  #below(limit: number): number {
    return this.#random.below(limit)
  }

  #pick<T>(values: readonly T[]): T {
    return this.#random.pick(values)
  }
}
