/** The requests, commands and JSON of all pages are sent to one server, in their order. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, describe, expect, test } from 'vitest'
import openapi from '../../../openapi/openapi.json' with { type: 'json' }
import { CreateConversation } from '../../../src/contract/conversation.ts'
import { Event } from '../../../src/contract/events/event.ts'
import { OpenRequests } from '../../../src/contract/request.ts'
import { CommandFrame } from '../../../src/contract/socket.ts'
import { rulesIn } from '../../../src/conversations/config/settings.ts'
import { readAnswer } from '../../../src/hooks/hook-answer.ts'
import { until } from '../../support/until.ts'
import type { Block } from '../blocks.ts'
import { filled, PAGES, shownIn } from '../blocks.ts'
import { exampleKind, examplesOf } from '../kinds.ts'
import { differenceOf } from './answers.ts'
import type { Sent } from './scene.ts'
import { Scene } from './scene.ts'
import { setExampleStage } from './stage.ts'

const stage = await setExampleStage()
afterAll(() => stage[Symbol.asyncDispose]())

const pages = PAGES.filter((page) => examplesOf(page).length > 0)

describe.each(pages)('%s', (page) => {
  const scene = new Scene(stage)
  let isRepeatable: Sent | undefined

  test.each(examplesOf(page).map((block) => [`${block.line}: ${block.text.split('\n', 1)[0]}`, block] as const))(
    '%s',
    async (_, block) => {
      const kind = exampleKind(block)
      if (kind === 'answer') return await expectAnswer(JSON.parse(block.text) as unknown, block.language)
      isRepeatable = undefined
      if (kind === 'request') await sendAll(block)
      else if (kind === 'shell') await scene.shell(block.text)
      else for (const { body } of shownIn(block.text)!) await useJson(body)
      expect(kind).toBeDefined()
    },
  )

  async function sendAll({ language, text }: Block): Promise<void> {
    const status = Number(language.split(' ')[1] ?? 0)
    for (const { method = '', path = '', body } of shownIn(text)!) {
      expectBodyOf(method, path, status < 400 ? body : undefined)
      const sent = { method, path, body }
      const reply = await scene.send(sent)
      isRepeatable = method === 'GET' ? sent : undefined
      const what = `${method} ${path}: ${JSON.stringify(reply.body)}`
      const error = String(reply.body?.error)
      const isUnknown = reply.isGuess && reply.status === 404 && error.endsWith('_not_found')
      if (status !== 0) expect(reply.status, what).toBe(status)
      // Where bubblewrap does not work.
      else if (!isUnknown && error !== 'network_mode_unavailable') expect(String(reply.status), what).toMatch(/^2/)
    }
  }

  /** The answer to the last request, or, with `later`, to the same request a little later. */
  async function expectAnswer(shown: unknown, language: string): Promise<void> {
    const again = language.endsWith('later') ? isRepeatable : undefined
    if (again)
      await until(
        'the answer of the page',
        async () => differenceOf(shown, (await scene.send(again)).body) === undefined,
      )
        // The comparison below says what differs.
        .catch(() => {})
    expect(differenceOf(shown, scene.last)).toBeUndefined()
  }

  /** An event, a list of requests, a frame, the answer of a hook, or a part of the body that creates a conversation. */
  async function useJson(json: unknown): Promise<void> {
    const body = filled(json)
    const fields = Object.keys(body as object)
    if (fields.includes('seq')) Event.parse(body)
    else if (fields.includes('items')) OpenRequests.parse(body)
    else if (fields.includes('type')) CommandFrame.parse(body)
    else if (fields.includes('hookSpecificOutput')) readAnswer('PreToolUse', JSON.stringify(body))
    else await create(body)
  }

  async function create(body: unknown): Promise<void> {
    // Also that its rules can be read.
    rulesIn(CreateConversation.parse(body), (text) => text)
    const reply = await scene.send({ method: 'POST', path: '/conversations', body })
    if (reply.body.error !== 'network_mode_unavailable') expect(reply.status, JSON.stringify(reply.body)).toBe(201)
  }
})

type Operation = { requestBody?: { content: Record<string, { schema: object }> } }
const { paths } = openapi as unknown as { paths: Record<string, Record<string, Operation>> }
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
ajv.addSchema(openapi, 'openapi.json')

function expectBodyOf(method: string, path: string, body: unknown): void {
  const shape = (route: string) => route.replace(/\?.*/, '').replaceAll(/\{\w+\}/g, '{}')
  const hasOperation = (each: string) => paths[each]?.[method.toLowerCase()] !== undefined
  const route =
    Object.keys(paths).find((each) => shape(each) === shape(path)) ??
    Object.keys(paths).find((each) => hasOperation(each) && matches(shape(each), shape(path)))
  const operation = paths[route ?? '']?.[method.toLowerCase()]
  expect(operation, `${method} ${path}`).toBeDefined()
  if (body === undefined || !operation?.requestBody) return
  const at = `#/paths/${route!.replaceAll('~', '~0').replaceAll('/', '~1')}/${method.toLowerCase()}`
  const validate = ajv.compile({
    $ref: `openapi.json${encodeURI(at)}/requestBody/content/application~1json/schema`,
  })
  expect(validate(filled(body)), `${method} ${path}: ${ajv.errorsText(validate.errors)}`).toBe(true)
}

/** A path with values in it, such as `/conversations/{}/files/notes.txt`. */
function matches(route: string, path: string): boolean {
  const pattern = route
    .replaceAll('.', String.raw`\.`)
    .replace(/(?<=\/(?:files|file-info|dirs)\/)\{\}$/, '.+')
    .replaceAll('{}', '[^/]+')
  return new RegExp(`^${pattern}$`).test(path)
}
