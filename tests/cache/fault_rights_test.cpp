// Folders that this user may read and not write, and paths where no folder can be made.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "tests/cache/cache_fixture.h"
#include "tests/support/child_process.h"

namespace chord::cache {
namespace {

using testing::ChildProcess;

// As a user whom file modes bind; root is not.
class Rights : public CacheTest {
 protected:
  int as_plain_user(const std::function<int()>& body) {
    return ChildProcess::run([&] {
             if (::geteuid() == 0 && (::setgid(4711) != 0 || ::setuid(4711) != 0)) return 20;
             return body();
           })
        .wait();
  }
  void give_to_plain_user() {
    ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
    if (::geteuid() != 0) return;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
      ASSERT_EQ(::lchown(entry.path().c_str(), 4711, 4711), 0);
  }
  void set_folder_mode(mode_t mode) {
    std::vector<std::string> folders{root()};
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root()))
      if (entry.is_directory()) folders.push_back(entry.path());
    for (const std::string& path : folders) ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }
};

TEST_F(Rights, AReadOnlyFolderWithAllHitsSaysNothing) {
  const CacheKey key = make_key("a");
  fill({key});
  give_to_plain_user();
  set_folder_mode(0500);
  EXPECT_EQ(as_plain_user([&] {
              const auto cache = open();
              if (!cache->get_or_make(key, maker(key)).ok() || compiles != 0) return 1;
              return log.warnings().empty() ? 0 : 2;
            }),
            0);
  set_folder_mode(0700);
}

TEST_F(Rights, AReadOnlyFolderWithOneMissServesItAndWarnsOnce) {
  const CacheKey key = make_key("a");
  fill({key});
  give_to_plain_user();
  set_folder_mode(0500);
  EXPECT_EQ(as_plain_user([&] {
              const auto cache = open();
              for (const char* source : {"b", "c"})
                if (!cache->get_or_make(make_key(source), maker(make_key(source))).ok()) return 1;
              if (!cache->get_or_make(key, maker(key)).ok() || compiles != 2) return 2;
              return log.warnings().size() == 1 ? 0 : 3;
            }),
            0);
  set_folder_mode(0700);
}

// A home that exists and takes nothing, `/`, and a path where nothing can be made.
TEST_F(Rights, AFolderThatCanNotBeMadeServesAndWarnsOnce) {
  const std::string home = folder / "home";
  ASSERT_TRUE(std::filesystem::create_directory(home));
  give_to_plain_user();
  ASSERT_EQ(::chmod(home.c_str(), 0555), 0);
  for (const std::string& path :
       {home + "/.cache/chord", std::string("/"), std::string("/no/such")})
    EXPECT_EQ(as_plain_user([&] {
                CacheSettings unusable = settings();
                unusable.writable_dir = path;
                const auto cache = open(unusable);
                for (const char* source : {"a", "b"}) {
                  const CacheKey key = make_key(source);
                  const auto entry = cache->get_or_make(key, maker(key));
                  if (!entry || (*entry)->cubin != cubin_of(key)) return 1;
                  if (cache->find(key) == nullptr) return 2;
                }
                if (compiles != 2 || cache->counters().write_failures != 2) return 3;
                return log.warnings().size() == 1 ? 0 : 4;
              }),
              0)
        << path;
  EXPECT_TRUE(std::filesystem::is_empty(home));
}

}  // namespace
}  // namespace chord::cache
