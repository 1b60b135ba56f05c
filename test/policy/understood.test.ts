/** The gate looks into all that a construct of bash holds: a table of its own says what that is. */
import type { SyntaxNode } from 'unbash'
import { forEachChild, parse } from 'unbash'
import { describe, expect, test } from 'vitest'
import { oddityOf } from '../../src/policy/shell/constructs.ts'
import { childrenOf, UNDERSTOOD } from '../../src/policy/shell/understood.ts'
import { EVALUATED, NODES, PAYLOADS } from './differential/constructs.ts'

/** All nodes of a line, found by the parser's own visitor. */
function nodesIn(line: string): SyntaxNode[] {
  const nodes: SyntaxNode[] = []
  const visit = (node: SyntaxNode): void => {
    nodes.push(node)
    forEachChild(node, visit)
  }
  visit(parse(line))
  return nodes
}

const childrenByParser = (node: SyntaxNode): SyntaxNode[] => {
  const children: SyntaxNode[] = []
  forEachChild(node, (child) => void children.push(child))
  return children
}

const placeOf = ({ type, pos, end }: SyntaxNode): string => `${type} ${pos}-${end}`

/** Constructs with parts that may be left out, besides those of the other lists. */
const MORE = [
  'x=1 y=2 echo a <b >c 2>&1',
  'if a; then b; elif c; then d; elif e; then f; else g; fi <x',
  'for x; do a; done; for ((i=0; i<2; i++)); do b; done; for ((;;)); do c; done',
  'case "$x" in a|b) c;; (d) ;& e) f;;& esac',
  'echo ${x:1:2} ${x:1} ${x/a/b} ${x//a} ${x^} ${x,,a} ${x[1]:-b} ${x[@]#c}',
  'echo $((a + b * (c - d))) $((a ? b : c)) $((!a)) $((i++))',
  '[[ a == b && ! -f c || ( d -nt e ) ]]',
  'coproc n { a; }; select x in a b; do c; done; until a; do b; done',
  'f() { a; } >b; function g { c; }',
  'cat 3<<E 4<<<"a" {fd}>b\n$x\nE',
  'x+=(a [1]=b); y[2]+=c',
  'time -p ! a | b |& c; { d; } | (e)',
]

test.each([...Object.entries(NODES), ...Object.entries(EVALUATED), ...MORE.map((line) => [line, line] as const)])(
  'of %s the gate looks into what the parser finds in it',
  (_what, template) => {
    for (const payload of PAYLOADS) {
      for (const node of nodesIn(template.replaceAll('PAYLOAD', () => payload))) {
        const own = childrenOf(node)
        expect(own && new Set(own.map(placeOf)), placeOf(node)).toEqual(new Set(childrenByParser(node).map(placeOf)))
      }
    }
  },
)

test('each place of the table that is looked into is in one of the lines', () => {
  const lines = [...Object.values(NODES), ...Object.values(EVALUATED), ...MORE]
  const nodes = lines.flatMap((line) =>
    PAYLOADS.flatMap((payload) => nodesIn(line.replaceAll('PAYLOAD', () => payload))),
  )
  const filled = new Set(
    nodes.flatMap((node) =>
      Object.keys(UNDERSTOOD[node.type])
        .filter((key) => [Reflect.get(node, key) as unknown].flat().some((value) => typeof value === 'object' && value))
        .map((key) => `${node.type}.${key}`),
    ),
  )
  const read = Object.entries(UNDERSTOOD).flatMap(([type, positions]) =>
    Object.entries(positions).flatMap(([key, position]) => (position === 'read' ? `${type}.${key}` : [])),
  )
  expect(read.filter((place) => !filled.has(place))).toEqual([])
})

describe('an operator of a test', () => {
  const of = (type: string, operator: string) => oddityOf({ type, operator } as unknown as SyntaxNode) !== undefined

  test.each(['-f', '-z', '-O'])('%s about one operand is looked into', (operator) => {
    expect(of('TestUnary', operator)).toBe(false)
  })

  test.each(['-v', '-R', '', 'f', '-ff', 'a-f', '-', '-1'])('%j about one operand may run commands', (operator) => {
    expect(of('TestUnary', operator)).toBe(true)
  })

  test.each(['=', '==', '!=', '=~', '<', '>', '-nt', '-ot', '-ef'])('%s about two is looked into', (operator) => {
    expect(of('TestBinary', operator)).toBe(false)
  })

  test.each(['-eq', '-ne', '-lt', '-le', '-gt', '-ge', '', '!', '===', 'a=', '<=', '-ntx', 'a-nt'])(
    '%j about two may run commands',
    (operator) => {
      expect(of('TestBinary', operator)).toBe(true)
    },
  )
})
