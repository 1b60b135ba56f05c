/** Finds where a shell may take a text differently from the parser, which reads it as bash does. The cases were found by running command lines at random in a real bash. */
import type { SyntaxNode } from 'unbash'
import type { Syntax } from './unwrapped.ts'

/** The end of a sentence that begins with "it"; undefined where both certainly agree. */
export function doubtAbout(node: SyntaxNode, syntax: Syntax): string | undefined {
  if (syntax === 'posix' && !isPortable(node)) return 'has a construct that `sh` may take differently from bash'
  switch (node.type) {
    case 'AnsiCQuoted':
      return node.text.replaceAll(PLAIN_ESCAPE, '').includes('\\')
        ? 'has an escape that bash may take differently'
        : undefined
    case 'Literal':
      return hasExpansion(node.text) ? 'has an expansion that cannot be parsed' : undefined
    case 'Word':
      return !node.parts && hasExpansion(node.text) ? 'has an expansion that cannot be parsed' : undefined
    case 'BraceExpansion':
      return !node.parts && hasExpansion(node.text) ? 'has an expansion that cannot be parsed' : undefined
    case 'HereDoc':
      return !node.delimiter?.quoted && !node.body.parts && hasExpansion(node.body.text)
        ? 'has an expansion that cannot be parsed'
        : undefined
    case 'Assignment':
      // `x=(a)$(b)`: the parser drops what follows the list.
      return node.value.end === node.end ? undefined : 'has an assignment that cannot be parsed'
    case 'Command': {
      // `x=<(a) b`: one word for bash, and two for the parser.
      const words = [...node.prefix, ...(node.name ? [node.name] : []), ...node.suffix]
      const isSplit = words.some((word, at) => word.pos === words[at - 1]?.end)
      return isSplit ? 'has a word that cannot be parsed' : undefined
    }
    case 'Subshell': {
      // `((…))`: bash tries it as arithmetic first.
      const first = node.body.commands[0]
      const isDouble = first?.command.type === 'Subshell' && first.command.pos === node.pos + 1
      return isDouble ? 'begins with two parentheses' : undefined
    }
    case 'Redirect': {
      // Bash expands the file of `>&` twice.
      const isPlain = node.operator !== '>&' || /^[\w./~+:,-]*$/.test(node.target?.text ?? '')
      return isPlain ? undefined : 'has a file after >& that bash expands twice'
    }
    default:
      return undefined
  }
}

/** Bash also knows `\x{2f}`, ends the text at a NUL character, and takes `\u` according to the charset. */
const PLAIN_ESCAPE =
  /\\(?:[abeEfnrtv\\'"?]|x[0-7]?[1-9a-fA-F](?![0-9a-fA-F])|x[1-7][0-9a-fA-F]|[1-7](?![0-7])|[0-7][1-7](?![0-7])|[1-7]0(?![0-7])|1[0-7]{2}|0[1-7][0-7]|00[1-7]|u00[2-7][0-9a-fA-F](?![0-9a-fA-F]))/g

/** Searches what the parser takes for plain text. */
const hasExpansion = (text: string): boolean => /`|\$[({[\w@*#?!]/.test(text.replaceAll(/\\[^]/g, ''))

/** What POSIX defines: in `sh -c '[[ x || rm ]]'`, many shells run `rm`, and `$'` is not a quote for them. */
const PORTABLE: ReadonlySet<SyntaxNode['type']> = new Set([
  'AndOr',
  'Assignment',
  'BraceGroup',
  'Case',
  'CaseItem',
  'Command',
  'CommandExpansion',
  'CompoundList',
  'Default',
  'DoubleQuoted',
  'Elif',
  'FileDescriptor',
  'For',
  'Glob',
  'If',
  'Literal',
  'Negation',
  'ParameterExpansion',
  'Pipeline',
  'Redirect',
  'Redirected',
  'Remove',
  'Script',
  'SimpleExpansion',
  'SingleQuoted',
  'Statement',
  'Subshell',
  'While',
  'Word',
])

function isPortable(node: SyntaxNode): boolean {
  if (!PORTABLE.has(node.type)) return false
  switch (node.type) {
    case 'Assignment':
      return !node.append && !node.index
    case 'CaseItem':
      return node.terminator === undefined || node.terminator === ';;'
    case 'CommandExpansion':
      return !(node.text.startsWith('`') && node.text.includes('\\'))
    case 'Pipeline':
      return node.operators.every((operator) => operator === '|')
    case 'Redirect':
      return /^([<>]|>>|>\||<>|[<>]&)$/.test(node.operator)
    default:
      return true
  }
}
