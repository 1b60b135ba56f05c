/** What a person has written is named in errors, and not the field of the API. */
import { expect, test } from 'vitest'
import { combineModelSettings, fromEnvironment, fromFile, fromOptions } from '../../src/cli/settings/model-settings.ts'
import { SettingNames } from '../../src/cli/settings/setting-names.ts'
import { checkBudgetOfRun } from '../../src/conversations/subagents/check-budget.ts'
import type { ModelCatalog } from '../../src/llm/catalog/model-catalog.ts'

const options = fromOptions({ model: 'gpt-5', apiKey: undefined, baseUrl: undefined })
const settings = { model: 'other', api_key: 'sk-1', base_url: 'https://example.com', temperature: 1 }
const file = fromFile({ path: '/home/settings.json', settings, notices: [] })

test('each field is called by what has set it, or by what would', () => {
  const { names } = combineModelSettings([options, file], file.nameOf('model'))
  const both = new SettingNames(names)
  expect(both.in('check llm_config.model and llm_config.base_url: llm_config.temperature')).toBe(
    'check --model and base_url of /home/settings.json: temperature of /home/settings.json',
  )
  const nothing = new SettingNames()
  const fields =
    'llm_config.base_url, llm_config.api_key, permission_mode, max_steps, mcp.mcpServers.x, llm_config.timeout'
  expect(nothing.in(`check ${fields}; the tool mcp__x and the word mcp stay`)).toBe(
    'check --base-url, LLM_API_KEY, --permission-mode, --max-steps, --mcp-config.mcpServers.x, llm_config.timeout (a field of the REST API); the tool mcp__x and the word mcp stay',
  )
  const text = { type: 'ToolResult', message: 'llm_config.model' }
  expect(nothing.inEvent(text)).toBe(text)
})

test('a refused budget says how unknown costs are allowed, as a field and as an option', () => {
  const catalog = { knowsCost: () => false } as unknown as ModelCatalog // only the cost is asked for
  let message = ''
  try {
    checkBudgetOfRun({ llm_config: {}, max_budget_usd: 1 }, 'own', catalog)
  } catch (error) {
    message = (error as Error).message
  }
  expect(message).toMatch(/, or allow the unknown cost with allow_unpriced\.$/)
  expect(new SettingNames().in(message)).toMatch(/, or allow the unknown cost with --allow-unpriced\.$/)
})

test('the key of another endpoint is named', () => {
  const elsewhere = fromOptions({ model: 'gpt-5', apiKey: undefined, baseUrl: 'https://other.example' })
  const { missing } = combineModelSettings([elsewhere, file], '/home/settings.json')
  expect(missing?.message).toMatch(/^api_key of \/home\/settings.json is for another endpoint than https:\/\/other/)
})

test('the environment takes every field of the model: texts as they are, others as JSON', () => {
  const environment = {
    LLM_TEMPERATURE: '0.5',
    LLM_FALLBACK_MODELS: '["small"]',
    LLM_DISABLE_VISION: 'true',
    LLM_EXTRA_HEADERS: '{"X-Team": "red"}',
    LLM_API_VERSION: '2026-01-01',
    LLM_NUM_RETRIES: '',
  }
  expect(fromEnvironment(environment).values).toMatchObject({
    temperature: 0.5,
    fallback_models: ['small'],
    disable_vision: true,
    extra_headers: { 'X-Team': 'red' },
    api_version: '2026-01-01',
  })
  expect(() => fromEnvironment({ LLM_NUM_RETRIES: 'sk-in-the-wrong-place' })).toThrow(
    /^LLM_NUM_RETRIES is not valid: (?!.*sk-)/,
  )
})

test('what belongs to a model, or to an endpoint, does not hold for another one', () => {
  const values = {
    model: 'one',
    base_url: 'https://one.example.com/v1',
    context_window: 9000,
    input_cost_per_token: 1,
    temperature: 0.1,
    provider: 'anthropic' as const,
    extra_headers: { authorization: 'Basic c2VjcmV0' },
  }
  const own = fromFile({ path: '/home/settings.json', settings: values, notices: [] })
  expect(combineModelSettings([own], '').llm).toEqual(values)
  const otherModel = combineModelSettings(
    [fromOptions({ model: 'two', apiKey: undefined, baseUrl: undefined }), own],
    '',
  )
  const { context_window: _, input_cost_per_token: __, ...ofEndpoint } = values
  expect(otherModel.llm).toEqual({ ...ofEndpoint, model: 'two' })
  const elsewhere = fromOptions({ model: undefined, apiKey: undefined, baseUrl: 'https://two.example.com/v1' })
  const { provider: ___, extra_headers: ____, ...ofModel } = values
  expect(combineModelSettings([elsewhere, own], '').llm).toEqual({ ...ofModel, base_url: 'https://two.example.com/v1' })
})
