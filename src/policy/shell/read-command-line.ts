/** Reads a command line into its commands and redirections, without running anything. Never throws. */
import type * as Unbash from 'unbash'
import type { CommandArgument, Redirection as RedirectionNode, SyntaxNode } from 'unbash'
import type { CommandLine, Redirection, SimpleCommand } from './command-line.ts'
import { isOutput, isStream } from './command-line.ts'
import { isEvaluated, isSetByBash, maySet, namesSetBy } from './evaluating-builtins.ts'
import { ReadingBounds } from './reading-bounds.ts'
import { isOwnName, isSafeVariable } from './safe-variables.ts'
import type { ShellWord } from './shell-word.ts'
import { literalOf, UNKNOWN_WORD } from './shell-word.ts'
import { isNumber, oddityOf } from './constructs.ts'
import type { Directories } from './directories.ts'
import { directoriesAfter } from './directories.ts'
import { doubtAbout } from './parser-doubts.ts'
import { childrenOf } from './understood.ts'
import { readWord } from './words.ts'
import type { Syntax, UnwrappedCommand } from './unwrapped.ts'
import { unwrap } from './wrappers.ts'

/** The parser, loaded when a command line is first read: most servers never need it. */
export type ShellParser = Pick<typeof Unbash, 'parse'>

export type CommandContext = {
  readonly parser: ShellParser
  /** The current directory of the shell; undefined: anywhere. */
  readonly cwd: string | undefined
  readonly homes: readonly string[]
  /** Variables of the shell with an attribute by which it evaluates what is assigned to them. */
  readonly evaluates?: readonly string[] | undefined
}

/** Reading takes time quadratic in these for some inputs: within both bounds at most some 20 ms, measured. */
const MAX_COMMAND_CHARS = 64 * 1024
const MAX_SUBSTITUTIONS = 500
/** `bash -c "bash -c '…'"`. */
const MAX_NESTED_SCRIPTS = 8

const SUBSTITUTION = /[$<>]\(|`|<<|\$\{/g
/** Bash and a reader may disagree about these: control characters except tab and newline, and non-ASCII spaces. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const ODD_CHARACTER = /[\0-\x08\x0b-\x1f\x7f-\xa0\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]/

export function readCommandLine(text: string, context: CommandContext): CommandLine {
  const reader = new CommandLineReader(context)
  reader.readText(text)
  return reader.result
}

class CommandLineReader {
  readonly #context: CommandContext
  readonly #redirections: Omit<Redirection, 'isStream'>[] = []
  /** A descriptor besides that of the input may be one of a file that was opened for reading. */
  #movesDescriptors = false
  readonly #values: ShellWord[] = []
  #commands: SimpleCommand[] = []
  #directories: Directories
  #hidden: string | undefined
  #unusual: string | undefined
  #depth = 0
  /** Counts what may run later, or again: a `cd` anywhere in it counts from its start. */
  #repeats = 0
  #isAnywhere = false
  /** True in a launcher, whose guesses include those of the launchers that it runs. */
  #isLaunched = false
  /** How the shell that runs the text reads it. */
  #syntax: Syntax = 'bash'
  /** Nothing more is looked into beyond them. */
  readonly #bounds = new ReadingBounds()

  constructor(context: CommandContext) {
    this.#context = context
    this.#directories = context.cwd === undefined ? undefined : [context.cwd]
  }

  get result(): CommandLine {
    const line = { values: this.#values, hidden: this.#hidden ?? this.#bounds.exceeded, unusual: this.#unusual }
    const redirections = this.#redirections.map((each) => ({
      ...each,
      cwds: this.#isAnywhere ? undefined : each.cwds,
      isStream: each.kind === 'read' ? isStream(each.target) : isOutput(each.target, this.#movesDescriptors),
    }))
    return { commands: this.#isAnywhere ? this.#commands.map(anywhere) : this.#commands, redirections, ...line }
  }

  readText(text: string, syntax = this.#syntax): void {
    const refusal = refuseText(text)
    if (refusal !== undefined) return this.#hide(refusal)
    if (!this.#bounds.takesChars(text.length)) return
    if (this.#depth >= MAX_NESTED_SCRIPTS) return this.#hide('it nests too many scripts')
    this.#depth += 1
    const outer = { isLaunched: this.#isLaunched, syntax: this.#syntax }
    this.#isLaunched = false
    this.#syntax = syntax
    try {
      this.#readScript(this.#context.parser.parse(text))
    } catch {
      // Input that nests so deeply that the parser runs out of stack.
      this.#hide('it cannot be parsed')
    }
    this.#isLaunched = outer.isLaunched
    this.#syntax = outer.syntax
    this.#depth -= 1
  }

  #readScript(script: ParsedScript): void {
    if (script.errors?.length) this.#hide('it cannot be parsed with certainty')
    this.#readChildren(script)
  }

  #readChildren(node: SyntaxNode): void {
    const children = childrenOf(node)
    if (!children) return this.#hide('it has a construct that is not known')
    for (const child of children) this.#read(child)
  }

  #read(node: SyntaxNode): void {
    if (!this.#bounds.takesNode(node)) return
    const doubt = doubtAbout(node, this.#syntax)
    if (doubt !== undefined) this.#hide(`it ${doubt}`)
    const oddity = oddityOf(node)
    if (oddity && 'hidden' in oddity) this.#hide(oddity.hidden)
    else if (oddity) this.#unusual ??= oddity.unusual
    switch (node.type) {
      case 'Script':
        return this.#readScript(node)
      case 'Command':
        return this.#readCommand(node)
      case 'Redirect':
        return this.#readRedirect(node)
      case 'For':
      case 'Select':
        this.#setVariable(literalOf(readWord(node.name)) ?? '[')
        return this.#readRepeated(node)
      case 'Assignment':
        if (node.value.type === 'Word' && !isSafeVariable(node.name)) this.#values.push(readWord(node.value))
        if (!isNumber(node.value)) this.#assign(node.name)
        return this.#readChildren(node)
      case 'FileDescriptor':
        return this.#useDescriptor(String(node.value))
      case 'FileDescriptorVariable':
        // `{x}>&-` closes the descriptor whose number is in `x`.
        this.#unusual ??= 'it has a descriptor whose number is not known'
        return this.#setVariable(node.name)
      case 'Coproc':
        // Its descriptors are in an array of this name.
        this.#setVariable(node.name ? (literalOf(readWord(node.name)) ?? '[') : 'COPROC')
        return this.#readRepeated(node)
      case 'While':
      case 'ArithmeticFor':
      case 'Function':
        return this.#readRepeated(node)
      default:
        return this.#readChildren(node)
    }
  }

  #readRepeated(node: SyntaxNode): void {
    this.#repeats += 1
    this.#readChildren(node)
    this.#repeats -= 1
  }

  /** What it substitutes runs before the command itself. */
  #readCommand(node: Extract<SyntaxNode, { type: 'Command' }>): void {
    const { name, args, prefix } = node
    const unsafe = prefix.find((each) => each.type === 'Assignment' && !isSafeVariable(each.name))
    const unsafeVariable = unsafe?.type === 'Assignment' ? unsafe.name : undefined
    this.#readChildren(node)
    if (this.#bounds.exceeded !== undefined) return
    if (name) this.#addCommand([readWord(name), ...args.map(readArgument)], unsafeVariable)
    else if (unsafeVariable !== undefined) this.#unusual ??= `it sets ${unsafeVariable}`
  }

  #addCommand(words: readonly ShellWord[], unsafeVariable: string | undefined): void {
    const cwds = this.#directories
    if (!this.#bounds.takesCommand(words)) return
    if (!this.#isLaunched && mayBeBuiltin(words[0])) this.#hide('only the shell knows the name of a command in it')
    const unwrappedCommand = unwrap(words)
    const set = this.#context.evaluates?.find((variable) => isSetByBash(variable) || maySet(words, variable))
    if (set !== undefined) this.#assign(set)
    const unsafeName = namesSetBy(words).find((name) => !isSafeVariable(name) && !isOwnName(name))
    if (unsafeName !== undefined) this.#unusual ??= `it sets ${unsafeName}`
    if (unwrappedCommand.hidden !== undefined) this.#hide(unwrappedCommand.hidden)
    const unsafe = unsafeVariable ?? unwrappedCommand.variables.find((variable) => !isSafeVariable(variable))
    const evaluatedVariable = unwrappedCommand.variables.find(isEvaluated)
    if (evaluatedVariable !== undefined) this.#hide(`it sets ${evaluatedVariable}, which may run commands`)
    const wraps = unwrappedCommand.kind && {
      kind: unwrappedCommand.kind,
      commands: this.#readWrapped(unwrappedCommand, unsafe),
    }
    this.#commands.push({ words, cwds, unsafeVariable: unsafe, wraps })
    this.#enterBy(words)
  }

  #readWrapped({ kind, runs }: UnwrappedCommand, unsafe: string | undefined): readonly SimpleCommand[] {
    const outer = { commands: this.#commands, isLaunched: this.#isLaunched }
    if (kind === 'launcher' && outer.isLaunched) return []
    const inner: SimpleCommand[] = []
    this.#commands = inner
    this.#isLaunched ||= kind === 'launcher'
    for (const run of runs) {
      const before = this.#directories
      if (run.elsewhere) this.#directories = undefined
      if ('script' in run) this.readText(run.script, run.syntax)
      else if (this.#depth >= MAX_NESTED_SCRIPTS) this.#hide('it nests too many commands')
      else {
        this.#depth += 1
        this.#addCommand(run.words, unsafe)
        this.#depth -= 1
      }
      if (run.elsewhere) this.#directories = before
    }
    this.#commands = outer.commands
    this.#isLaunched = outer.isLaunched
    return unsafe === undefined ? inner : inner.map((command) => ({ ...command, unsafeVariable: unsafe }))
  }

  #enterBy(words: readonly ShellWord[]): void {
    this.#directories = directoriesAfter(words, this.#directories, this.#context.homes)
    const isChange = CHANGES_DIRECTORY.has(literalOf(words[0] ?? UNKNOWN_WORD) ?? '')
    // What came before it in a loop runs after it too.
    this.#isAnywhere ||= isChange && this.#repeats > 0
  }

  #readRedirect(node: Extract<RedirectionNode, { type: 'Redirect' }>): void {
    const { target, operator } = node
    this.#readChildren(node)
    if (!target) return
    const word = readWord(target)
    const opensOther = operator === '<' && node.descriptor !== undefined
    this.#movesDescriptors ||= opensOther || (/^[<>]&$/.test(operator) && !/^[12-]$/.test(literalOf(word) ?? ''))
    // `2>&1`, `>&-`, `<&3-`: no file. But `&>1` is one.
    const copiedDescriptor = /^[<>]&$/.test(operator) ? /^(?:(\d+)-?|-)$/.exec(literalOf(word) ?? '') : null
    if (copiedDescriptor) return this.#useDescriptor(copiedDescriptor[1] ?? '')
    if (operator === '<&') return this.#hide('it has a redirection to an unknown descriptor')
    const kind = operator === '<' ? 'read' : 'edit'
    if (!this.#bounds.takesRedirection(word)) return
    this.#redirections.push({ kind, target: word, cwds: this.#directories })
  }

  /** Bash keeps its own descriptors from 10 on while a command runs: that of the commands that it reads, for example. */
  #useDescriptor(number: string): void {
    if (number !== '' && !/^0*\d$/.test(number)) this.#hide('it uses a descriptor of the shell itself')
  }

  /** `declare -i x` of an earlier command line makes `x='a[$(command)]'` run the command. */
  #assign(name: string): void {
    const { cwd, evaluates } = this.#context
    if (evaluates?.includes(name)) this.#hide(`the shell evaluates what is assigned to ${name}, which may run commands`)
    else if (!evaluates && cwd === undefined) this.#unusual ??= `it is not known whether the shell evaluates ${name}`
  }

  #setVariable(name: string): void {
    this.#assign(name)
    if (isEvaluated(name) || name.includes('[')) this.#hide(`${name} may run commands`)
    if (!isSafeVariable(name)) this.#unusual ??= `it sets ${name}`
  }

  #hide(why: string): void {
    this.#hidden ??= why
  }
}

type ParsedScript = Extract<SyntaxNode, { type: 'Script' }>

const CHANGES_DIRECTORY = new Set(['cd', 'pushd', 'popd'])

/** A name that is not known, and is not the path of a program: `eval` and `cd` change what all else means. */
const mayBeBuiltin = (name: ShellWord | undefined): boolean =>
  name !== undefined &&
  literalOf(name) === undefined &&
  (name.isMany || !name.pieces.some((piece) => 'text' in piece && piece.text.includes('/')))

function anywhere(command: SimpleCommand): SimpleCommand {
  const { wraps } = command
  return { ...command, cwds: undefined, wraps: wraps && { ...wraps, commands: wraps.commands.map(anywhere) } }
}

function readArgument(argument: CommandArgument): ShellWord {
  if (argument.type === 'Word') return readWord(argument)
  const { name, value, index, append } = argument
  const isPlain = value.type === 'Word' && !index && !append
  const pieces = isPlain ? readWord(value).pieces : [{ hole: 'any' as const }]
  return { pieces: [{ text: `${name}=` }, ...pieces], isMany: false, hasTilde: false }
}

function refuseText(text: string): string | undefined {
  if (text.length > MAX_COMMAND_CHARS) return `it has more than ${MAX_COMMAND_CHARS} characters`
  if (ODD_CHARACTER.test(text)) return 'it has control characters or spaces that bash does not take as spaces'
  if ((text.match(SUBSTITUTION)?.length ?? 0) > MAX_SUBSTITUTIONS) return 'it has too many substitutions'
  return undefined
}
