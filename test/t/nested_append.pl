# An append inside an append: a row trigger on doorbell.event may, an index expression gets a clear error, and nothing hangs.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

foreach my $preloaded (0, 1)
{
	my $how = $preloaded ? 'with preloading' : 'without preloading';
	my $node = new_node("node$preloaded", conf => $preloaded ? "shared_preload_libraries = 'pg_doorbell'" : '');
	$node->safe_psql('postgres', q{
		CREATE FUNCTION public.audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF new.stream <> 'audit' THEN
				PERFORM doorbell.append('audit', 'seen', to_jsonb(new.stream || ' ' || new.seq));
			END IF;
			RETURN NULL;
		END $$;
		CREATE FUNCTION public.nested(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
			PERFORM doorbell.append('other', 'test', '1');
			RETURN $1;
		END $$;
		CREATE INDEX nested ON doorbell.event (public.nested(type));
		SET statement_timeout = '60s';
	});
	my ($status, undef, $error) = $node->psql('postgres', q{SET statement_timeout = '60s'; SELECT doorbell.append('s', 'test', '1')});
	isnt($status, 0, "an index expression cannot append, $how");
	like($error, qr/cannot append while an append stores its event.*An index expression on doorbell\.event must not append/s, "and is told so, $how");

	$node->safe_psql('postgres', q{
		DROP INDEX doorbell.nested;
		CREATE TRIGGER audit AFTER INSERT ON doorbell.event FOR EACH ROW EXECUTE FUNCTION public.audit()});
	is($node->safe_psql('postgres', q{SELECT doorbell.append('s', 'test', '1')}), '1', "the stream is as before, $how");
	is(events($node, 'audit'), '1 "s 1"', "a row trigger can append, $how");
	$node->stop;
}
done_testing();
