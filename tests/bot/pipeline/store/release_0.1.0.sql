-- The tables of release 0.1.0, as both kinds of database were given them; {serial} is their own way of counting up.
CREATE TABLE budgets (day TEXT NOT NULL, scope TEXT NOT NULL, micros BIGINT NOT NULL, calls BIGINT NOT NULL,
    PRIMARY KEY (day, scope));
CREATE TABLE counters (name TEXT NOT NULL, labels TEXT NOT NULL, value FLOAT NOT NULL, updated_at FLOAT NOT
    NULL, PRIMARY KEY (name, labels));
CREATE TABLE decisions (id {serial}, job TEXT NOT NULL, position INTEGER NOT NULL, kind TEXT NOT NULL,
    repository TEXT NOT NULL, number BIGINT NOT NULL, revision TEXT NOT NULL, verdict TEXT, abstained TEXT,
    bounced BOOLEAN, model TEXT NOT NULL, calls INTEGER NOT NULL, input_tokens BIGINT NOT NULL, output_tokens
    BIGINT NOT NULL, seconds FLOAT NOT NULL, cost_usd FLOAT, decision TEXT NOT NULL, config_hash TEXT NOT NULL,
    outcome TEXT, created_at FLOAT NOT NULL, CONSTRAINT decisions_once UNIQUE (job, position));
CREATE INDEX decisions_kind ON decisions (repository, kind, id);
CREATE INDEX decisions_subject ON decisions (repository, number, kind, id);
CREATE INDEX decisions_time ON decisions (created_at, kind, verdict, bounced, repository);
CREATE TABLE deliveries (seq {serial}, id TEXT NOT NULL, kind TEXT NOT NULL, repository TEXT NOT NULL, event
    TEXT NOT NULL, received_at FLOAT NOT NULL, dispatched_at FLOAT, problem TEXT, UNIQUE (id));
CREATE INDEX deliveries_waiting ON deliveries (seq) WHERE dispatched_at IS NULL;
CREATE TABLE jobs (id TEXT NOT NULL, delivery TEXT NOT NULL, seq BIGINT NOT NULL, position INTEGER NOT NULL,
    task TEXT NOT NULL, kind TEXT NOT NULL, repository TEXT NOT NULL, number BIGINT NOT NULL, state TEXT NOT
    NULL, attempt INTEGER DEFAULT '0' NOT NULL, tries INTEGER DEFAULT '0' NOT NULL, due FLOAT NOT NULL, outcome
    TEXT, error TEXT, superseded_by TEXT, created_at FLOAT NOT NULL, started_at FLOAT, finished_at FLOAT,
    PRIMARY KEY (id));
CREATE INDEX jobs_delivery ON jobs (delivery);
CREATE INDEX jobs_state ON jobs (state, due);
CREATE INDEX jobs_subject ON jobs (repository, number, task);
CREATE TABLE model_calls (id {serial}, job TEXT NOT NULL, prompt_hash TEXT NOT NULL, schema TEXT NOT NULL,
    purpose TEXT NOT NULL, repository TEXT NOT NULL, subject TEXT NOT NULL, model TEXT NOT NULL, calls INTEGER
    NOT NULL, input_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL, seconds FLOAT NOT NULL, cost_usd
    FLOAT, reply TEXT, error TEXT, created_at FLOAT NOT NULL);
CREATE UNIQUE INDEX model_calls_once ON model_calls (job, prompt_hash, schema) WHERE reply IS NOT NULL;
CREATE INDEX model_calls_time ON model_calls (created_at, repository, model, calls, input_tokens, output_tokens,
    cost_usd);
CREATE TABLE paces (installation BIGINT NOT NULL, next_at FLOAT NOT NULL, PRIMARY KEY (installation));
CREATE TABLE postings (id {serial}, key TEXT NOT NULL, type TEXT NOT NULL, task TEXT NOT NULL, repository TEXT
    NOT NULL, number BIGINT NOT NULL, job TEXT NOT NULL, github_id BIGINT NOT NULL, content_hash TEXT NOT NULL,
    created_at FLOAT NOT NULL, updated_at FLOAT NOT NULL, UNIQUE (key));
CREATE INDEX postings_github ON postings (repository, github_id);
CREATE INDEX postings_subject ON postings (repository, number);
CREATE TABLE reservations (id TEXT NOT NULL, day TEXT NOT NULL, scopes TEXT NOT NULL, micros BIGINT NOT NULL,
    calls BIGINT NOT NULL, PRIMARY KEY (id));
CREATE TABLE signals (key TEXT NOT NULL, repository TEXT NOT NULL, category TEXT NOT NULL, outcome TEXT NOT
    NULL, source TEXT NOT NULL, by TEXT NOT NULL, updated_at FLOAT NOT NULL, PRIMARY KEY (key));
CREATE INDEX signals_repository ON signals (repository, category);
CREATE TABLE workers (slot INTEGER NOT NULL, name TEXT NOT NULL, started_at FLOAT NOT NULL, seen_at FLOAT NOT
    NULL, PRIMARY KEY (slot));
