/**
 * What of a construct of bash needs a permission, besides the commands in it. The switch has a case for each node type of
 * the parser, so that a new one does not compile until somebody has decided about it.
 */
import type { SyntaxNode } from 'unbash'
import { isEvaluated, isInteger } from './evaluating-builtins.ts'
import { isLocale, isSafeLocale } from './safe-variables.ts'
import { literalOf } from './shell-word.ts'
import { readWord } from './words.ts'

/** `hidden`: it may run commands that cannot be seen. `unusual`: all is seen, but it is not for a rule to allow. */
export type Oddity = { readonly hidden: string } | { readonly unusual: string }

const hiddenOddity = (reason: string): Oddity => ({ hidden: reason })
const ARITHMETIC = hiddenOddity('its arithmetic may run commands')

/** Bash does no more with these than with what they hold, which is looked into. */
const HOLDERS = [
  'AndOr',
  'AnsiCQuoted',
  'BraceExpansion',
  'BraceGroup',
  'Case',
  'CaseItem',
  'CaseModification',
  'Command',
  'CompoundList',
  'Default',
  'DoubleQuoted',
  'Elif',
  'FileDescriptor',
  'FileDescriptorVariable',
  'For',
  'Glob',
  'HereDocBody',
  'HereDocDelimiter',
  'If',
  'Literal',
  'Negation',
  'Pipeline',
  'Redirected',
  'Remove',
  'Replace',
  'Script',
  'SimpleExpansion',
  'SingleQuoted',
  'Statement',
  'Subshell',
  'TestCommand',
  'TestGroup',
  'TestLogical',
  'TestNot',
  'Time',
  'While',
  'Word',
] as const

type Holder = Extract<SyntaxNode, { readonly type: (typeof HOLDERS)[number] }>
const isHolder = (node: SyntaxNode): node is Holder => HOLDERS.some((type) => type === node.type)

export function oddityOf(node: SyntaxNode): Oddity | undefined {
  if (isHolder(node)) return undefined
  switch (node.type) {
    case 'Coproc':
    case 'LocaleString':
    case 'Select':
      return { unusual: `it has a construct that is not looked into (${node.type})` }
    case 'Function':
      return { unusual: 'it defines a function' }
    // Arithmetic evaluates the text of variables, which may run commands: `a[$(command)]`. Only plain numbers are free.
    case 'ArithmeticExpansion':
      return /^\$\(\([\d\s+*/%()-]*\)\)$/.test(node.text) ? undefined : ARITHMETIC
    case 'ArithmeticBinary':
    case 'ArithmeticGroup':
    case 'ArithmeticUnary':
      return undefined
    case 'ArithmeticWord':
      return /^\s*\d+\s*$/.test(node.value) ? undefined : ARITHMETIC
    case 'ArithmeticCommand':
    case 'ArithmeticCommandExpansion':
    case 'ArithmeticFor':
    case 'ArithmeticTernary':
      return ARITHMETIC
    case 'ExtendedGlob':
      return hiddenOddity('it has an extended glob, which bash parses only if an option is on')
    case 'ParameterExpansion':
      return ofExpansion(node)
    // `${x:offset:length}` is arithmetic, `${x@P}` expands what it finds, and `${!x*}` depends on how bash takes it.
    case 'Slice':
      return [node.offset, node.length].every((word) => /^[\d\s-]*$/.test(word?.text ?? '')) ? undefined : EXPANSION
    case 'Names':
    case 'Transform':
    case 'Unknown':
      return EXPANSION
    case 'TestUnary':
      return /^-[a-zA-Z]$/.test(node.operator) && !['-v', '-R'].includes(node.operator) ? undefined : TEST
    case 'TestBinary':
      return /^([=!]?=|=~|<|>|-(nt|ot|ef))$/.test(node.operator) ? undefined : TEST
    case 'Assignment':
      return ofAssignment(node)
    case 'ArrayValue':
      return node.elements.some(({ text }) => mayHaveIndex(text)) ? INDEX : undefined
    case 'Redirect':
    case 'HereString':
      return node.target ? undefined : hiddenOddity('it has a redirection without a target')
    case 'HereDoc':
      return node.closing && node.delimiter ? undefined : hiddenOddity('a here-document has no end')
    case 'CommandExpansion':
    case 'ProcessSubstitution':
      return node.script ? undefined : hiddenOddity('it has a substitution that cannot be parsed')
    default:
      node satisfies never
      return hiddenOddity('it has a construct that is not known')
  }
}

const EXPANSION = hiddenOddity('it has an expansion that may run commands')
const TEST = hiddenOddity('its test may run commands')
const INDEX = hiddenOddity('the index of an array may run commands')

/** Texts that bash and the parser certainly take as the same, and that set nothing. */
const PLAIN_OPERAND = /^[\w./:@%+,=*?$-]*$/

function ofExpansion(node: Extract<SyntaxNode, { type: 'ParameterExpansion' }>): Oddity | undefined {
  const { parameter, prefix, index, operation } = node
  if (prefix === '!' || (index && !/^([@*]|\d+)$/.test(index.text)) || !/^(\w+|[@*#?$!-])$/.test(parameter))
    return EXPANSION
  switch (operation?.type) {
    case undefined:
    case 'Slice':
      return undefined
    case 'Default':
      // `${x:=y}` sets it, and `${x:?y}` ends the shell.
      if (/^:?[-+]$/.test(operation.operator)) return plainOrUnusual(operation.operand.text)
      return isEvaluated(parameter) ? hiddenOddity(`${parameter} may run commands`) : MAY_SET
    case 'Remove':
      return plainOrUnusual(operation.operand.text)
    case 'Replace':
      return plainOrUnusual(operation.pattern.text + operation.replacement.text)
    case 'CaseModification':
      return plainOrUnusual(operation.operand?.text ?? '')
    default:
      return EXPANSION
  }
}

const MAY_SET: Oddity = { unusual: 'it has an expansion that may set a variable' }

const plainOrUnusual = (text: string): Oddity | undefined =>
  PLAIN_OPERAND.test(text) ? undefined : { unusual: 'it has an expansion that is not plain' }

function ofAssignment({ name, index, value }: Extract<SyntaxNode, { type: 'Assignment' }>): Oddity | undefined {
  if (index && !/^\d+$/.test(index.text)) return INDEX
  if (isLocale(name) && value.type === 'Word' && isSafeLocale(literalOf(readWord(value)))) return undefined
  return isEvaluated(name) && !(isInteger(name) && isNumber(value))
    ? hiddenOddity(`${name} may run commands`)
    : undefined
}

/** The value that any attribute of a variable leaves as it is. */
export const isNumber = (value: Extract<SyntaxNode, { type: 'Assignment' }>['value']): boolean =>
  value.type === 'Word' && /^\d+$/.test(value.text)

/** `x=([index]=value)`. What begins with another character is a value, or a glob with brackets in it. */
const mayHaveIndex = (text: string): boolean => text.includes('[') && !/^[\w./"'-][^{\\]*$/.test(text)
